/** Rows: what each kind of credential may make: nothing that is good for longer than itself. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { adminEndpoints } from "../../src/admin/api/plugin";
import { sha256 } from "../../src/lib/net/in/credentials";
import { browserOf, postForm, signedInTool, toolAt } from "../support/device-login";
import type { TestMember } from "../support/members";
import { startTeamApp, type TeamApp } from "../support/team-app";
import { describeWithMembers } from "../support/teams";
import { token as adminToken } from "./callers";

/** `yes`: it is made, and good as long as it says itself · `no`: it is refused · `as long`: it is made, and ends with what made it. */
type May = "yes" | "no" | "as long";
const made = ["a key", "a sign-in at GitHub", "a page sign-in", "an upstream's token", "a tool's sign-in"] as const;
type Made = (typeof made)[number];
const credentials = ["the admin token", "a member's key", "a key until tomorrow", "a tool's token"] as const;
type Credential = (typeof credentials)[number];

const table: Record<Made, Record<Credential, May>> = {
  "a key": {
    "the admin token": "yes",
    "a member's key": "yes",
    "a key until tomorrow": "as long",
    "a tool's token": "no",
  },
  "a sign-in at GitHub": {
    "the admin token": "yes",
    "a member's key": "yes",
    "a key until tomorrow": "yes",
    "a tool's token": "no",
  },
  "a page sign-in": {
    "the admin token": "as long",
    "a member's key": "as long",
    "a key until tomorrow": "as long",
    "a tool's token": "no",
  },
  // The admin token is no client key.
  "an upstream's token": {
    "the admin token": "no",
    "a member's key": "yes",
    "a key until tomorrow": "yes",
    "a tool's token": "no",
  },
  // Only members have tools that sign in.
  "a tool's sign-in": {
    "the admin token": "no",
    "a member's key": "yes",
    "a key until tomorrow": "as long",
    "a tool's token": "no",
  },
};

describeWithMembers("what a credential may make", (place) => {
  let server: TeamApp;
  let anna: TestMember;
  let tomorrow: number;
  const secrets = {} as Record<Credential, string>;
  beforeAll(async () => {
    server = await startTeamApp(place, { env: { ADMIN_TOKEN: adminToken } });
    anna = await server.addMember("anna", "anna-octo");
    tomorrow = Date.now() + 24 * 3_600_000;
    const by = sha256(anna.key);
    const short = { name: "short", models: null, expiresAt: tomorrow, by };
    Object.assign(secrets, {
      "the admin token": adminToken,
      "a member's key": anna.key,
      "a key until tomorrow": await server.stores.members.createKey(anna.id, short),
      "a tool's token": (await signedInTool(server, anna.key)).access_token,
    } satisfies Record<Credential, string>);
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  const asJson = { "content-type": "application/json", "x-forwarded-for": "203.0.113.9" };
  const post = (path: string, secret: string, body: object) =>
    fetch(server.url + path, {
      method: "POST",
      headers: { ...asJson, authorization: `Bearer ${secret}` },
      body: JSON.stringify(body),
    });
  const expiryOf = (key: string) => server.stores.members.findKey([key])?.expiresAt ?? null;
  const how = (until: number | null): May => (until === null ? "yes" : until <= tomorrow ? "as long" : "yes");
  let count = 0;

  const makes: Record<Made, (secret: string) => Promise<May>> = {
    async "a key"(secret) {
      const answer = await post("/api/admin/keys", secret, { name: `made-${count++}` });
      if (answer.status === 403) {
        expect(await answer.json()).toMatchObject({ error: { message: expect.stringContaining("lasts an hour") } });
        return "no";
      }
      const { key } = (await answer.json()) as { key: string };
      return how(expiryOf(key));
    },
    async "a sign-in at GitHub"(secret) {
      const answer = await post("/api/admin/accounts/sign-ins", secret, {});
      if (!answer.ok) return "no";
      const { id } = (await answer.json()) as { id: string };
      expect((await post(`/api/admin/accounts/sign-ins/${id}/cancel`, secret, {})).status).toBe(200);
      return "yes";
    },
    async "a page sign-in"(secret) {
      const answer = await postForm(`${server.url}/admin/sign-in`, { token: secret });
      const cookie = answer.headers.get("set-cookie")?.split(";")[0];
      if (cookie === undefined) {
        expect([answer.status, await answer.text()]).toEqual([401, expect.stringContaining("lasts an hour")]);
        return "no";
      }
      const headers = { cookie, "x-forwarded-for": "203.0.113.9" };
      expect((await fetch(`${server.url}/admin`, { headers })).status).toBe(200);
      // A page sign-in ends with its key or token: test/people/keys/page-sign-ins.test.ts.
      return "as long";
    },
    async "an upstream's token"(secret) {
      const headers = { authorization: `Bearer ${secret}` };
      return (await fetch(`${server.url}/token`, { headers })).ok ? "yes" : "no";
    },
    async "a tool's sign-in"(secret) {
      const tool = toolAt(server);
      const { user_code, device_code } = await tool.begin(`tool-${count++}`);
      const headers = { authorization: `Bearer ${secret}` };
      const byHeader = await postForm(`${server.url}/admin/device`, { user_code }, headers);
      expect(byHeader.status, "a secret in a header confirms nothing").toBeGreaterThanOrEqual(400);
      const decided = await (await browserOf(server, secret)).decide(user_code);
      if (!decided.location) return "no";
      const { access_token } = await tool.poll(device_code);
      expect((await tool.ask(access_token)).status).toBe(200);
      const key = server.stores.members.clientKeysOf(anna.id).find(({ name }) => name === `anna/tool-${count - 1}`);
      return how(key?.expiresAt ?? null);
    },
  };

  describe.each(made.map((each) => [each] as const))("%s", (what) => {
    test.each(credentials.map((each) => [each, table[what][each]] as const))("by %s: %s", async (credential, may) => {
      expect(await makes[what](secrets[credential])).toBe(may);
    });
  });

  test("the routes of members that a tool's token may not use are those that make something which lasts", () => {
    const posts = adminEndpoints().filter(({ method, role }) => method === "POST" && role === "member");
    expect(Object.fromEntries(posts.map((row) => [row.path, row.access === "lasting"]))).toEqual({
      "/api/admin/accounts/sign-ins": true,
      "/api/admin/accounts/sign-ins/:id/cancel": false,
      "/api/admin/accounts/pause": false,
      "/api/admin/accounts/order": false,
      "/api/admin/accounts/remove": false,
      "/api/admin/live/:requestId/cancel": false,
      "/api/admin/keys": true,
      "/api/admin/keys/:name/revoke": false,
    });
  });
});
