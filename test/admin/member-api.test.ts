/** Scenario: the admin API and the pages as a member of a team; see also member-isolation.test.ts. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { formTokenIn, signedIn } from "../support/form-fields";
import type { TestMember } from "../support/members";
import { askAs } from "../support/members";
import { describeWithMembers, individuals, startTeam, type Team, type TeamServer } from "../support/teams";
import { until } from "../support/until";

describeWithMembers("a member at the admin API", (place) => {
  let team: Team;
  let server: TeamServer;
  let anna: TestMember;
  let ben: TestMember;
  /** The ids of the rows, by who asked. */
  let rows: { request_id: string; key_name: string }[];

  beforeAll(async () => {
    team = await startTeam(place, { accounts: individuals("octo-demo") });
    server = await team.server();
    const { key } = await server.admin("/keys", { name: "owner-key" });
    const limit = { unit: "premium", limit: 100, per: "day" };
    await server.admin("/budgets", { name: "annas-own", scope: { key: "anna/*" }, ...limit });
    await server.admin("/budgets", { name: "of-everybody", scope: {}, ...limit });
    await server.admin("/budgets", { name: "of-ben", scope: { key: "ben/*" }, ...limit });
    ({ anna, ben } = await team.addMembers({ anna: ["anna-one", "anna-two"], ben: ["ben-demo"] }));
    // A request that comes before the server knows the accounts would have a row without one.
    for (const each of [anna, ben])
      await until(
        async () =>
          JSON.parse((await as(each, "GET", "/api/admin/accounts")).text).items?.length === each.logins.length,
        "the server knows the accounts",
      );
    for (const each of [key, anna.key, ben.key])
      await until(async () => (await askAs(server, { key: each })).status === 200, "the key is known");
    await until(async () => {
      rows = (await server.admin("/requests")).items;
      return new Set(rows.map(({ key_name }) => key_name)).size === 3;
    }, "a row of each key is written");
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
  const rowOf = (name: string) => rows.find(({ key_name }) => key_name === name)!.request_id;

  test("sees their own accounts, requests, budgets and keys; the owner sees the sums of all", async () => {
    const read = async (path: string) => JSON.parse((await as(anna, "GET", `/api/admin${path}`)).text);
    const own = rows.filter(({ key_name }) => key_name === "anna/key-1").length;
    expect((await read("/accounts")).items.map((each: { account_id: string }) => each.account_id)).toEqual(anna.logins);
    expect((await read("/requests")).items).toHaveLength(own);
    expect((await read("/totals")).request_count).toBe(own);
    expect((await read("/statistics?by=account_key")).groups).toHaveLength(1);
    expect((await read(`/requests/${rowOf("anna/key-1")}`)).item.member).toBe(anna.id);
    expect((await read("/keys")).items.map((each: { name: string }) => each.name)).toEqual(["anna/key-1"]);
    expect((await read("/budgets")).items.map((each: { name: string }) => each.name)).toEqual(["annas-own"]);
    expect((await read("/models")).items[0].accounts).not.toContain("octo-demo");
    expect((await server.admin("/totals")).request_count).toBeGreaterThanOrEqual(rows.length);
    expect((await server.admin("/accounts")).items).toHaveLength(1);
    const begun = await as(anna, "POST", "/api/admin/accounts/sign-ins");
    const { id } = JSON.parse(begun.text);
    expect((await as(ben, "GET", `/api/admin/accounts/sign-ins/${id}`)).status).toBe(404);
    expect((await as(ben, "POST", `/api/admin/accounts/sign-ins/${id}/cancel`)).status).toBe(404);
    expect(JSON.parse((await as(anna, "POST", `/api/admin/accounts/sign-ins/${id}/cancel`)).text).state).toBe(
      "cancelled",
    );
  });

  test("signs in to the pages with the key, for as long as it is good", async () => {
    const { cookie } = await signedIn(server.url, ben.key);
    const open = async (path: string, method = "GET") => {
      const headers = { cookie, ...(method === "POST" && { "content-type": "application/x-www-form-urlencoded" }) };
      const answer = await fetch(`${server.url}${path}`, { method, redirect: "manual", headers });
      return { status: answer.status, text: await answer.text() };
    };
    const hidden = ["octo-demo", "anna-one", "anna-two", "anna/key-1", anna.id, "owner-key"];
    const others = rows.filter(({ key_name }) => key_name !== "ben/key-1").map((row) => row.request_id);
    const ownPages = ["", "/accounts", "/requests", "/requests/export?format=csv", "/models", "/cache", "/connect"].map(
      (path) => `/admin${path}`,
    );
    for (const path of [...ownPages, `/admin/requests/${rowOf("ben/key-1")}`]) {
      const { status, text } = await open(path);
      expect([path, status]).toEqual([path, 200]);
      for (const secret of [...hidden, ...others])
        expect([path, text]).toEqual([path, expect.not.stringContaining(secret)]);
    }
    expect((await open("/admin/requests")).text).toContain(rowOf("ben/key-1"));
    for (const row of others) expect((await open(`/admin/requests/${row}`)).text).toContain("No request with this ID");
    const closed = ["config", "health", "nothing"];
    for (const path of closed) expect([path, (await open(`/admin/${path}`)).status]).toEqual([path, 403]);
    expect((await open("/admin/config/save", "POST")).status).toBe(403);
  });

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

  test("a member at the admin API cannot open the owner's pages with the key", async () => {
    expect((await as(anna, "GET", "/admin")).status).toBe(403);
    expect((await as(anna, "GET", "/admin/requests")).status).toBe(403);
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
