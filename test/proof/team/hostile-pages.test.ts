/**
 * Scenario: the pages of a team against other sites, siblings of its domain and other members: whose form, whose
 * cookie, whose sign-in.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { adminEndpoints } from "../../../src/admin/api/plugin";
import { pageEndpoints } from "../../../src/admin/pages/plugin";
import { formTokenIn } from "../../support/form-fields";
import type { TestMember } from "../../support/members";
import { describeWithDatabases } from "../../support/shared-postgres";
import { startTeam, type Team, type TeamServer } from "../../support/teams";
import { until } from "../../support/until";

const adminToken = "admin-token-of-these-tests";
const host = "dragoman.company.example";
const origin = `https://${host}`;
/** What an edge adds that ends TLS, and what a browser sends with our own forms. */
const edge = { host, "x-forwarded-for": "192.0.2.7", "x-forwarded-proto": "https" };
const own = { origin, "sec-fetch-site": "same-origin" };

describeWithDatabases("the pages of a team", (postgres) => {
  let team: Team;
  let servers: [TeamServer, TeamServer];
  let anna: TestMember;
  let eve: TestMember;
  let stranger: { team: Team; server: TeamServer };
  beforeAll(async () => {
    const env = { ADMIN_TOKEN: adminToken };
    const trustedProxies = ["127.0.0.1"];
    team = await startTeam(postgres);
    servers = [await team.server({ trustedProxies, env }), await team.server({ trustedProxies, env })];
    ({ anna, eve } = await team.addMembers({ anna: ["anna-hub"], eve: ["eve-hub"] }));
    const another = await startTeam(postgres);
    stranger = { team: another, server: await another.server({ trustedProxies, env }) };
    for (const server of servers)
      for (const { key } of [anna, eve])
        await until(
          async () => (await send(server, "/v1/models", { headers: { "x-api-key": key } })).status === 200,
          "the server knows the key",
        );
  }, 60_000);
  afterAll(async () => {
    await stranger.team[Symbol.asyncDispose]();
    await team[Symbol.asyncDispose]();
  });

  type Sent = Omit<RequestInit, "headers"> & { headers?: Record<string, string> };
  const send = async ({ url }: TeamServer, path: string, { headers, ...init }: Sent = {}) => {
    const answer = await fetch(url + path, { ...init, redirect: "manual", headers: { ...edge, ...headers } });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  };
  const post = (server: TeamServer, path: string, fields: Record<string, string>, headers: Record<string, string>) =>
    send(server, path, { method: "POST", body: new URLSearchParams(fields), headers });
  const signIn = async (server: TeamServer, token: string, headers: Record<string, string> = {}) =>
    (await post(server, "/admin/sign-in", { token }, { ...own, ...headers })).headers.get("set-cookie")!;
  const pair = (setCookie: string) => setCookie.split(";")[0]!;
  const formToken = async (server: TeamServer, cookie: string) => {
    const page = await send(server, "/admin", { headers: { ...own, cookie } });
    return formTokenIn(page.text);
  };

  test("no form and no call of another site, another person or another team changes anything", async () => {
    const [here, there] = servers;
    const cookies = {
      owner: pair(await signIn(here, adminToken)),
      anna: pair(await signIn(here, anna.key)),
      eve: pair(await signIn(here, eve.key)),
      stranger: pair(await signIn(stranger.server, adminToken)),
    };
    const tokens = {
      owner: await formToken(here, cookies.owner),
      anna: await formToken(here, cookies.anna),
      eve: await formToken(here, cookies.eve),
      stranger: await formToken(stranger.server, cookies.stranger),
    };
    const old = `${(Date.now() - 25 * 3_600_000).toString(36)}-${tokens.owner.split("-")[1]}`;
    const sibling = { origin: "https://evil.company.example", "sec-fetch-site": "same-site" };
    const attempts: [string, Record<string, string>, string | undefined][] = [
      ["another origin", { origin: "https://evil.example", "sec-fetch-site": "cross-site" }, tokens.owner],
      ["a sibling", sibling, tokens.owner],
      ["a sibling that says nothing of itself", { "sec-fetch-site": "same-site" }, tokens.owner],
      ["the same host without TLS", { origin: `http://${host}:8080` }, tokens.owner],
      ["a frame without an origin", { origin: "null" }, tokens.owner],
      ["no token", own, undefined],
      ["no token, no origin", {}, undefined],
      ["a token of anna's", own, tokens.anna],
      ["a token of eve's, no origin", {}, tokens.eve],
      ["a token of another team", own, tokens.stranger],
      ["an old token", own, old],
      ["the token of nobody", own, "-"],
    ];
    const paths = pageEndpoints()
      .filter(({ method }) => method === "POST")
      .map(({ path }) => path);
    expect(paths.length).toBeGreaterThan(20);
    const fill = (path: string) => path.replace(":name", "anna").replace(":id", crypto.randomUUID());
    for (const path of paths)
      for (const [what, headers, form_token] of attempts) {
        const fields = { ...(form_token && { form_token }), name: "anna", account: "github.com/anna-hub" };
        const { status } = await post(there, fill(path), fields, { ...headers, cookie: cookies.owner });
        expect([path, what, status]).toEqual([path, what, 403]);
      }
    // A member's cookie is no key of the API, and neither is the owner's.
    for (const { method, path } of adminEndpoints())
      for (const cookie of [cookies.owner, cookies.anna]) {
        const sent = { method, headers: { ...own, cookie, "content-type": "application/json" } };
        const { status } = await send(there, fill(path), { ...sent, ...(method === "POST" && { body: "{}" }) });
        expect([method, path, status]).toEqual([method, path, 401]);
      }
    // All of it is as it was, and the same forms are right for whom they are.
    for (const [cookie, form_token] of [
      [cookies.owner, tokens.owner],
      [cookies.eve, tokens.eve],
    ] as const)
      expect((await post(there, "/admin/sign-out", { form_token }, { ...own, cookie })).status).toBe(303);
    expect((await send(there, "/v1/models", { headers: { "x-api-key": anna.key } })).status).toBe(200);
  });

  test("behind TLS, a cookie that a sibling of the domain has set is no sign-in of this site", async () => {
    const [here, there] = servers;
    const [annas, eves] = [await signIn(here, anna.key), await signIn(there, eve.key)];
    expect(annas).toMatch(/^__Host-[^;]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$/);
    // A sibling can set no cookie whose name begins with `__Host-`, and any other for whatever path.
    const tossed = pair(eves).replace("__Host-", "");
    const who = async (cookie: string, headers: Record<string, string> = {}) =>
      /<span class="who">(\w+)</.exec(
        (await send(here, "/admin", { headers: { ...own, ...headers, cookie } })).text,
      )?.[1];
    expect(await who(pair(annas))).toBe("anna");
    for (const cookie of [`${tossed}; ${pair(annas)}`, `${pair(annas)}; ${tossed}`])
      expect(await who(cookie)).toBe("anna");
    expect(await who(tossed)).toBeUndefined();
    // An edge that does not name the protocol: browsers send this header with TLS only.
    expect(await who(tossed, { "x-forwarded-proto": "" })).toBeUndefined();
    const form_token = await formToken(here, pair(annas));
    const left = await post(there, "/admin/sign-out", { form_token }, { ...own, cookie: pair(annas) });
    expect(left.headers.get("set-cookie")).toMatch(
      /^__Host-[^;]+=; Path=\/; HttpOnly; SameSite=Strict; Max-Age=0; Secure$/,
    );
    await until(async () => (await who(pair(annas))) === undefined, "the sign-in has ended");
  });

  test("each sign-in is a new one, whatever cookie came with it", async () => {
    const [here] = servers;
    const chosen = "A".repeat(43);
    const name = pair(await signIn(here, anna.key)).split("=")[0]!;
    const given = await signIn(here, anna.key, { cookie: `${name}=${chosen}` });
    expect(given).not.toContain(chosen);
    expect((await send(here, "/admin", { headers: { ...own, cookie: `${name}=${chosen}` } })).status).toBe(401);
  });

  test("a member cannot guess the owner's token beside the own key, without being counted", async () => {
    const [, there] = servers;
    const guess = async (token: string) => {
      const headers = { "x-forwarded-for": "198.51.100.2", "x-admin-token": token, "x-api-key": eve.key };
      return (await send(there, "/api/admin/members", { headers })).status;
    };
    const statuses: number[] = [];
    for (let tries = 0; tries < 10; tries += 1) statuses.push(await guess(`wrong-${tries}`));
    // It is the owner's, and a member has none of it.
    expect(statuses).toEqual(new Array(10).fill(403));
    expect([await guess("wrong"), await guess(adminToken)]).toEqual([429, 429]);
  });
});
