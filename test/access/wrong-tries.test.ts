/**
 * Rows: whoever tries wrong secrets is held up at what they try, and nobody else behind the same address is: neither at
 * another secret, nor, where a secret cannot be guessed, with a right one of the same kind.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { newClientKey } from "../../src/people/keys/client-keys";
import { newToken, newUserCode } from "../../src/people/keys/logins";
import { browserOf, postForm, signedInTool } from "../support/device-login";
import { type TestMember, withTeamStores } from "../support/members";
import { startTeam, type Team, type TeamServer } from "../support/teams";
import { metricsToken, token } from "./callers";

describe("wrong secrets from one network", () => {
  let team: Team;
  let server: TeamServer;
  let anna: TestMember;
  beforeAll(async () => {
    team = await startTeam("folder");
    const env = { ADMIN_TOKEN: token, DRAGOMAN_METRICS_TOKEN: metricsToken };
    server = await team.server({ trustedProxies: ["127.0.0.1"], env });
    anna = await team.addMember("anna", "anna-octo");
  });
  afterAll(() => team?.[Symbol.asyncDispose]());

  type Headers = Record<string, string>;
  const get = (path: string, headers: Headers) => fetch(server.url + path, { headers });
  const refresh = (refresh_token: string, from: Headers) =>
    postForm(`${server.url}/oauth/token`, { grant_type: "refresh_token", refresh_token }, from);
  const poll = (device_code: string, from: Headers) =>
    postForm(
      `${server.url}/oauth/token`,
      { grant_type: "urn:ietf:params:oauth:grant-type:device_code", device_code },
      from,
    );
  const join = (code: string, from: Headers) => get(`/admin/join/${code}`, from);
  const newCode = () => newClientKey().slice(-32);

  /** What a colleague behind the same address does with right secrets, and what it answers. */
  const right: Record<string, (from: Headers) => Promise<Response>> = {
    "the admin token": (from) => get("/api/admin/meta", { ...from, "x-admin-token": token }),
    "the metrics token": (from) => get("/metrics", { ...from, authorization: `Bearer ${metricsToken}` }),
    "a member's key": (from) => get("/api/admin/budgets", { ...from, "x-api-key": anna.key }),
    "a refresh token": async (from) => refresh((await signedInTool(server, anna.key)).refresh_token, from),
    "a new sign-in": (from) => postForm(`${server.url}/oauth/device_authorization`, { surface: "tool" }, from),
    "an invitation": async (from) => {
      const { code } = await withTeamStores(team, ({ members }) => members.invite("ben"));
      return join(code, from);
    },
    "a sign-in at the page": (from) => postForm(`${server.url}/admin/sign-in`, { token: anna.key }, from),
  };

  const [oldToken, oldCode, oldDevice] = [newToken("drr"), newCode(), newToken("drd")];
  // What is tried; what that one is answered after many; and the right ones that are refused with it.
  // biome-ignore format: a table is read by its rows
  test.each<[what: string, wrong: (from: Headers) => Promise<Response>, then: number, refused: string[]]>([
    ["admin tokens", (from) => get("/api/admin/meta", { ...from, "x-admin-token": crypto.randomUUID() }), 429, ["the admin token"]],
    ["admin tokens, beside a member's key", (from) => get("/api/admin/budgets", { ...from, "x-api-key": anna.key, "x-admin-token": crypto.randomUUID() }), 429, ["the admin token"]],
    ["metrics tokens", (from) => get("/metrics", { ...from, authorization: `Bearer ${crypto.randomUUID()}` }), 429, ["the metrics token"]],
    ["the same old refresh token", (from) => refresh(oldToken, from), 429, []],
    ["old refresh tokens of many tools", (from) => refresh(newToken("drr"), from), 401, []],
    ["the same old device code", (from) => poll(oldDevice, from), 429, []],
    ["old device codes of many tools", (from) => poll(newToken("drd"), from), 400, []],
    ["the same old invitation", (from) => join(oldCode, from), 429, []],
    ["many old invitations", (from) => join(newCode(), from), 404, []],
    ["cut invitations", (from) => join(newCode().slice(1), from), 404, []],
    ["keys that were revoked", (from) => get("/api/admin/budgets", { ...from, "x-api-key": newClientKey() }), 401, []],
    ["keys that were revoked, as admin tokens", (from) => get("/api/admin/meta", { ...from, "x-admin-token": newClientKey() }), 401, []],
  ])("%s", async (what, wrong, then, refused) => {
    const from = { "x-forwarded-for": `2001:db8:0:${Bun.hash.crc32(what).toString(16).slice(0, 4)}::1` };
    let last = 0;
    for (let time = 0; time < 12; time += 1) last = (await wrong(from)).status;
    expect(last).toBe(then);
    const held: string[] = [];
    for (const [name, ask] of Object.entries(right)) {
      const { status } = await ask(from);
      if (status === 429 || status === 400) held.push(name);
      else expect([name, status]).toEqual([name, name === "a sign-in at the page" ? 303 : 200]);
    }
    expect(held).toEqual(refused);
  });

  test.each<[string, (from: Headers) => Promise<Response>, number]>([
    ["refresh tokens", (from) => refresh(newToken("drr"), from), 401],
    ["invitations", (from) => join(newCode(), from), 404],
    ["client keys", (from) => get("/v1/models", { ...from, "x-api-key": newClientKey() }), 401],
    ["client keys at the admin API", (from) => get("/api/admin/meta", { ...from, "x-api-key": newClientKey() }), 401],
  ])("hundreds of different %s have an end, for what is tried and from where", async (what, wrong, first) => {
    const from = { "x-forwarded-for": `2001:db8:1:${Bun.hash.crc32(what).toString(16).slice(0, 4)}::1` };
    const statuses = new Set<number>();
    expect((await right["a member's key"]!(from)).status).toBe(200);
    for (let round = 0; round < 30; round += 1)
      for (const { status } of await Promise.all(Array.from({ length: 10 }, () => wrong(from)))) statuses.add(status);
    expect([...statuses]).toEqual([first]);
    expect((await wrong(from)).status).toBe(429);
    expect((await wrong({ "x-forwarded-for": "198.51.100.7" })).status).toBe(first);
    expect((await right["a member's key"]!(from)).status).toBe(200);
  });

  test("wrong codes of a tool's sign-in hold up the member who types them, and nobody else", async () => {
    const { key } = await team.addMember("carla", "carla-octo");
    const browser = await browserOf(server, key);
    const statuses: number[] = [];
    for (let time = 0; time < 11; time += 1)
      statuses.push((await browser.get(`/admin/device?user_code=${newUserCode()}`)).status);
    expect(statuses.slice(-2)).toEqual([404, 429]);
    expect((await (await browserOf(server, anna.key)).get(`/admin/device?user_code=${newUserCode()}`)).status).toBe(
      404,
    );
    expect((await right["a refresh token"]!({ "x-forwarded-for": "198.51.100.9" })).status).toBe(200);
  });
});
