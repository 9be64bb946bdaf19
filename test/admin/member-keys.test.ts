/**
 * Scenario: a member's own keys on the page Keys, without a script, and what they may use on others; and what somebody reads whose
 * key or token does not help.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { formTokenIn, signedIn } from "../support/form-fields";
import { type TestMember, untilKnown, withTeamStores } from "../support/members";
import { postJson } from "../support/post-json";
import { describeWithMembers, startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

/** From behind a proxy, where nobody is the owner without a token, and all servers have one address. */
const remote = { host: "dragoman.example", "x-forwarded-for": "192.0.2.7", "x-forwarded-proto": "https" };

describeWithMembers("the page Keys of a member", (place) => {
  let team: Team;
  let servers: [TeamServer, TeamServer];
  let anna: TestMember;
  let ben: TestMember;
  beforeAll(async () => {
    team = await startTeam(place);
    servers = [await team.server(), await team.server()];
    ({ anna, ben } = await team.addMembers({ anna: ["anna-demo"], ben: ["ben-demo"] }));
    await withTeamStores(team, ({ members }) =>
      members.setLimits("anna", { models: ["gpt-5*", "claude-*"], key_days: 90 }),
    );
  });
  afterAll(() => team[Symbol.asyncDispose]());

  /** A browser without script. */
  async function browse(server: TeamServer, key: string) {
    const signIn = await fetch(`${server.url}/admin/sign-in`, {
      method: "POST",
      redirect: "manual",
      headers: remote,
      body: new URLSearchParams({ token: key, next: "/admin/keys" }),
    });
    const headers = { ...remote, cookie: signIn.headers.get("set-cookie")?.split(";")[0] ?? "" };
    let token = "";
    const open = async (path: string, fields?: Record<string, string>, at = server) => {
      const body = fields && new URLSearchParams({ form_token: token, ...fields });
      const method = fields ? "POST" : "GET";
      const answer = await fetch(at.url + path, { method, redirect: "manual", headers, ...(body && { body }) });
      const text = await answer.text();
      token = /name="form_token" value="([^"]+)"/.exec(text)?.[1] ?? token;
      return { status: answer.status, text };
    };
    return { signedIn: signIn.status, answer: await signIn.text(), open };
  }

  test("the page Keys of a member makes a key within the limits, shows it once, and revokes it", async () => {
    await untilKnown([servers[0]], [anna]);
    const { open } = await browse(servers[0], anna.key);
    const page = await open("/admin/keys");
    expect(page.text).toContain("anna/key-1");
    expect(page.text).toContain("this sign-in");
    expect(page.text).toContain("each key expires 90 days after it was made");
    expect(page.text).not.toContain("ben/key-1");
    const made = await open("/admin/keys", { name: "laptop", models: "gpt-5-mini claude-haiku*" });
    const [, key] = /<pre id="new-key">(drg_[\w-]{43})<\/pre>/.exec(made.text)!;
    expect(made.text).toContain("anna/laptop");
    expect((await open("/admin/keys", { name: "Laptop" })).status).toBe(409);
    expect((await open("/admin/keys")).text).not.toContain(key!);
    await untilKnown([servers[1]], [{ key: key! }]);
    expect((await open("/admin/keys/revoke", { name: "ben/key-1" })).status).toBe(404);
    expect((await open("/admin/keys/revoke", { name: "anna/laptop" })).status).toBe(303);
    const asked = await fetch(`${servers[0].url}/v1/models`, { headers: { "x-api-key": key! } });
    expect(asked.status).toBe(401);
  });

  test("the pages Models and Connect offer what the limits allow", async () => {
    const { open } = await browse(servers[0], anna.key);
    const { text } = await open("/admin/models");
    expect(text).toContain("The owner allows your keys");
    const offered = async ({ key }: TestMember) => {
      const answer = await fetch(`${servers[0].url}/api/admin/models`, { headers: { "x-api-key": key } });
      return ((await answer.json()) as { items: { id: string }[] }).items.map(({ id }) => id);
    };
    const [own, all] = [await offered(anna), await offered(ben)];
    const others = all.filter((id) => !/^(?:claude-|gpt-5)/.test(id));
    expect(own).toEqual(all.filter((id) => !others.includes(id)));
    expect([text.includes(own[0]!), others.filter((id) => text.includes(id))]).toEqual([true, []]);
    const connect = (await open("/admin/connect")).text;
    const bens = (await (await browse(servers[0], ben.key)).open("/admin/connect")).text;
    expect(others.filter((id) => bens.includes(id))).not.toEqual([]);
    expect(others.filter((id) => connect.includes(id))).toEqual([]);
  });

  test("tries a prompt with the accounts, the key and the limits of the sign-in", async () => {
    const [server] = servers;
    const bearer = { authorization: `Bearer ${anna.key}` };
    const made = await server.post("/api/admin/keys", { name: "narrow", models: ["gpt-5-mini"] }, bearer);
    const headers = await signedIn(server.url, ((await made.json()) as { key: string }).key);
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

  test("the sign-in ends with its key, on every server, and the page says why", async () => {
    const { key } = (await (
      await postJson(`${servers[0].url}/api/admin/keys`, { name: "phone" }, { authorization: `Bearer ${anna.key}` })
    ).json()) as { key: string };
    await untilKnown([servers[1]], [{ key }]);
    const { open } = await browse(servers[0], key);
    expect((await open("/admin/keys", undefined, servers[1])).status).toBe(200);
    expect((await open("/admin/keys")).text).toContain("You signed in with this key, so you are signed out with it.");
    expect((await open("/admin/keys/revoke", { name: "anna/phone" })).status).toBe(303);
    const after = await open("/admin/keys");
    expect([after.status, after.text]).toEqual([401, expect.stringContaining("You were signed out, because the key")]);
    await until(
      async () => (await open("/admin/keys", undefined, servers[1])).status !== 200,
      "the sign-in has ended on the other server",
    );
    expect((await open("/admin/keys", undefined, servers[1])).text).toContain("You were signed out, because the key");
    const again = await browse(servers[0], key);
    expect([again.signedIn, again.answer]).toEqual([401, expect.stringContaining("no member has this key")]);
  });

  test("an owner without ADMIN_TOKEN reads that it is missing, and an API client too", async () => {
    const page = await fetch(`${servers[0].url}/admin`, { headers: remote });
    expect([page.status, await page.text()]).toEqual([
      401,
      expect.stringMatching(/The owner cannot sign in from another machine[\s\S]*ADMIN_TOKEN<\/code> is not set/),
    ]);
    const api = await fetch(`${servers[0].url}/api/admin/meta`, { headers: { ...remote, "x-admin-token": "guess" } });
    expect([api.status, await api.text()]).toEqual([401, expect.stringContaining("ADMIN_TOKEN is not set")]);
  });
});
