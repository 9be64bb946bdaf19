/**
 * Scenario: what the overview says of budgets and of members' accounts: to the owner, and to the member whom it
 * concerns.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { signedIn } from "../support/form-fields";
import { startProxy } from "../support/proxy";
import { startTeamApp, type TeamApp } from "../support/team-app";
import { until } from "../support/until";

const chat = { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] };
/** The text of the alerts. */
const alertsIn = (html: string) =>
  html
    .slice(html.indexOf("Needs attention"), html.indexOf("Remaining quota"))
    .replace(/<[^>]+>/g, " ")
    .replace(/\s+/g, " ");

test("a budget that is used up, and one that will be", async () => {
  let now = Date.parse("2026-11-05T00:00:00Z");
  await using proxy = await startProxy({
    clock: { now: () => now },
    config: {
      budgets: [
        { name: "Small", unit: "requests", limit: 1, per: "day" },
        { name: "Polite", unit: "requests", limit: 1, per: "day", then: "warn" },
        { name: "Slow", unit: "requests", limit: 4, per: "month" },
        { name: "Large", unit: "requests", limit: 1000, per: "month" },
      ],
    },
  });
  const overview = async () => alertsIn(await (await fetch(`${proxy.url}/admin`)).text());
  expect(await overview()).not.toContain("budget");
  await (await proxy.post("/v1/chat/completions", chat)).text();
  now += 3_600_000;
  const text = await overview();
  expect(text).toContain("The budget Small is used up. Further requests are refused. It resets at");
  expect(text).toContain("The budget Polite is used up. Requests are still sent, because it only warns.");
  expect(text).toContain("The budget Slow will be used up at");
  expect(text).not.toContain("Large");
});

describe("in a team", () => {
  let team: TeamApp;
  beforeAll(async () => {
    team = await startTeamApp("folder");
  });
  afterAll(() => team[Symbol.asyncDispose]());

  /** The overview of whoever signs in with this. */
  async function overview(secret?: string): Promise<string> {
    if (secret === undefined) return alertsIn(await (await fetch(`${team.url}/admin`)).text());
    const { cookie } = await signedIn(team.url, secret);
    return alertsIn(await (await fetch(`${team.url}/admin`, { headers: { cookie } })).text());
  }

  test("a member sees their own, and the owner whose they are", async () => {
    const budgets = [{ name: "Each", unit: "requests", limit: 1, per: "month", each: "member" }];
    await team.app.config.change({ budgets });
    const anna = await team.addMember("anna", "anna-demo");
    const ben = await team.addMember("ben", "ben-demo");
    const headers = { "x-api-key": anna.key };
    const response = await fetch(`${team.url}/v1/chat/completions`, {
      method: "POST",
      headers,
      body: JSON.stringify(chat),
    });
    expect(response.status).toBe(200);
    await response.text();
    team.app.forMember(ben.id).accounts[0]!.setState({ name: "failed", reason: "GitHub refuses it." });

    await until(async () => (await overview(anna.key)).includes("budget Each"), "the page names the budget");
    const [owners, annas, bens] = [await overview(), await overview(anna.key), await overview(ben.key)];
    expect(annas).toContain("The budget Each is used up. Further requests are refused. It resets at");
    expect(annas).not.toContain("ben");
    expect(bens).not.toContain("Each");
    expect(bens).toContain("ben-demo has failed.");
    expect(owners).toContain("The budget Each is used up for anna.");
    expect(owners).toContain("1 account of members failed. ben-demo of ben. A new sign-in helps.");
  });
});
