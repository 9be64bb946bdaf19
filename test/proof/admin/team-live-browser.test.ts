/** Scenario: what runs on a server of a team, followed live in a real Chromium, as the owner and as a member. */
import { expect } from "bun:test";
import { overflowOf, violations, withBrowser } from "../../support/browser";
import { describeWithPassingDatabases } from "../../support/shared-postgres";
import { individuals, startTeam, type TeamServer } from "../../support/teams";
import { until } from "../../support/until";

const inBrowser = await withBrowser();

/** A stream that runs until it is cancelled. @returns All of its text. */
async function run(server: TeamServer, key: string): Promise<{ id: string; text: Promise<string> }> {
  const messages = [{ role: "user", content: "[demo: silence 25] Hello" }];
  const answer = await server.post(
    "/v1/chat/completions",
    { model: "gpt-5-mini", messages, stream: true },
    { "x-api-key": key },
  );
  expect(answer.status).toBe(200);
  return { id: answer.headers.get("x-request-id")!, text: answer.text() };
}

describeWithPassingDatabases("what runs on a server of a team", (postgres) => {
  inBrowser.test(
    "appears by itself on its page, is opened and cancelled there; a member sees their own",
    async () => {
      await using team = await startTeam(postgres, { accounts: individuals("octo-demo") });
      const anna = await team.addMember("anna", "anna-demo");
      const env = { ADMIN_TOKEN: "t-admin-0123456789" };
      const here = await team.server({ env });
      await team.server({ env });
      const { key } = await here.admin("/keys", { name: "laptop" });
      const allFaults: string[][] = [];
      const open = async (secret: string, viewport: { width: number; height: number }, dark = false) => {
        const url = `${here.url.replace("127.0.0.1", "elsewhere.test")}/admin/requests?follow=1`;
        const { page, faults } = await inBrowser.open(url, { viewport, colorScheme: dark ? "dark" : "light" });
        allFaults.push(faults);
        await page.getByLabel("Admin token or key").fill(secret);
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("link", { name: "Live · stop" }).waitFor();
        return page;
      };
      const owner = await open(env.ADMIN_TOKEN, { width: 1280, height: 800 });
      const member = await open(anna.key, { width: 360, height: 740 }, true);

      const [annas, owners] = [await run(here, anna.key), await run(here, key)];
      await owner.getByRole("heading", { name: "2 requests running" }).waitFor();
      await member.getByRole("heading", { name: "1 request running" }).waitFor();
      expect(await member.content()).not.toContain(owners.id);
      for (const page of [owner, member]) expect(await violations(page)).toEqual([]);
      expect(await overflowOf(member)).toBe(0);

      // The member opens their request, and cancels it; the page of the owner follows.
      await member.locator(`a[href="/admin/requests/${annas.id}"]`).click();
      await member.getByRole("heading", { name: "In progress" }).waitFor();
      await member.getByRole("button", { name: "Cancel request" }).click();
      await member.getByText("The member whose key it uses cancelled the request.").first().waitFor();
      expect(await annas.text).toContain('"code":"cancelled"');
      await owner.getByRole("heading", { name: "1 request running" }).waitFor();
      await owner.getByRole("button", { name: "Cancel the request for gpt-5-mini" }).click();
      await owner.getByText("The owner of this proxy cancelled the request.").first().waitFor();
      expect(await owners.text).toContain('"code":"cancelled"');

      // The page says what it does not show, also while the database is away. Servers hear of each other within seconds.
      const sentence = "Requests that 1 other server may run are not shown here.";
      const shown = async () => {
        await owner.goto(new URL("/admin/requests?follow=1", owner.url()).href);
        return owner.getByText(sentence).isVisible();
      };
      await until(shown, "the page says that there is another server");
      const own = await run(here, key);
      await owner.getByRole("heading", { name: "1 request running" }).waitFor();
      await owner.getByText(sentence).waitFor();
      await postgres.stop();
      await owner.reload();
      await owner.getByText("Requests that other servers run are not shown here.").waitFor();
      await owner.getByRole("heading", { name: "1 request running" }).waitFor();
      expect(await violations(owner)).toEqual([]);
      await postgres.start();
      expect((await here.admin(`/live/${own.id}/cancel`, {})).cancelled).toBe(true);
      await own.text;
      expect(allFaults.flat()).toEqual([]);
    },
    60_000,
  );
});
