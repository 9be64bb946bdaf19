/** Scenario: what a member of a team does at the admin API and on the pages; member-isolation.test.ts has what they see. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { formTokenIn, signedIn } from "../support/form-fields";
import { askAs, type TestMember } from "../support/members";
import { describeWithMembers, individuals, startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

describeWithMembers("a member at the admin API", (place) => {
  let team: Team;
  let server: TeamServer;
  let anna: TestMember;
  let ben: TestMember;

  beforeAll(async () => {
    team = await startTeam(place, { accounts: individuals("octo-demo") });
    server = await team.server();
    ({ anna, ben } = await team.addMembers({ anna: ["anna-one", "anna-two"], ben: ["ben-demo"] }));
    for (const each of [anna, ben])
      await until(async () => (await askAs(server, each)).status === 200, "the key is known");
  });
  afterAll(() => team[Symbol.asyncDispose]());

  const as = async ({ key }: TestMember, method: string, path: string, body: object = {}) => {
    const answer = await fetch(`${server.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(method === "POST" && { "content-type": "application/json" }) },
      ...(method === "POST" && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, text: await answer.text() };
  };

  test("tries a prompt with the accounts, the key and the limits of the sign-in", async () => {
    const made = await as(anna, "POST", "/api/admin/keys", { name: "narrow", models: ["gpt-5-mini"] });
    const key = JSON.parse(made.text).key as string;
    const headers = await signedIn(server.url, key);
    const page = await (await fetch(`${server.url}/admin/try`, { headers })).text();
    expect(page).toContain("<code>anna/narrow</code>");
    expect([...page.matchAll(/<option value="([\w.-]+)"[^>]*>[\w.-]+ · /g)].map(([, model]) => model)).toEqual([
      "gpt-5-mini",
    ]);
    const form_token = formTokenIn(page);
    const send = (model: string) => {
      const form = { form_token, dialect: "chat", model, prompt: "Hello", max_tokens: "50" };
      return fetch(`${server.url}/admin/try/send`, { method: "POST", headers, body: new URLSearchParams(form) });
    };
    const answer = await send("gpt-5-mini");
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("[DONE]")]);
    const { item } = await server.admin(`/requests/${answer.headers.get("x-request-id")}`);
    expect(anna.logins).toContain(item.account_id);
    expect(item).toMatchObject({ member: anna.id, key_name: "anna/narrow" });
    const refused = await send("claude-sonnet-4.6");
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("model_not_allowed")]);
  });

  test("a member at the admin API may revoke their own key, which is refused from then on, and so is a sign-in that it began", async () => {
    // From behind a proxy, where nobody is the owner without a token.
    const remote = { "x-forwarded-for": "192.0.2.7" };
    const closed = await fetch(`${server.url}/admin/requests`, { headers: remote });
    expect([closed.status, await closed.text()]).toEqual([
      401,
      expect.stringContaining("A member enters their own key"),
    ]);
    const { cookie } = await signedIn(server.url, ben.key, remote);
    const visit = () => fetch(`${server.url}/admin/requests`, { headers: { ...remote, cookie } });
    expect((await visit()).status).toBe(200);
    expect((await as(ben, "POST", `/api/admin/keys/${encodeURIComponent("ben/key-1")}/revoke`)).status).toBe(200);
    expect((await askAs(server, ben)).status).toBe(401);
    expect((await visit()).status).toBe(401);
    expect((await askAs(server, anna)).status).toBe(200);
  });
});
