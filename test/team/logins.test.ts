/** Scenario: sign-ins of tools by the device flow, with the parts of the protocol by which Claude Code uses them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { dayMs } from "../../src/lib/format";
import { sha256 } from "../../src/lib/net/in/credentials";
import { sql } from "../../src/lib/sql";
import { maxMemberKeys } from "../../src/people/keys/members";
import { browserOf, postForm, signedInTool, toolAt } from "../support/device-login";
import { askTables, type TestMember } from "../support/members";
import { startTeamApp, type TeamApp } from "../support/team-app";
import { describeWithMembers } from "../support/teams";
import { until } from "../support/until";

describeWithMembers("sign-ins of tools", (place) => {
  let server: TeamApp;
  let other: TeamApp;
  let anna: TestMember;
  beforeAll(async () => {
    server = await startTeamApp(place);
    other = place === "folder" ? server : await startTeamApp(place, { env: server.env, demo: server.demo });
    anna = await server.addMember("anna", "anna-octo");
    await until(() => other.app.hasKeys, "the other server knows that there are members");
  });
  afterAll(async () => {
    if (other !== server) await other?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });
  test("the metadata name the endpoints at the address that the client used", async () => {
    const found = await (await fetch(`${server.url}/.well-known/oauth-authorization-server`)).json();
    expect(found).toEqual({
      issuer: server.url,
      device_authorization_endpoint: `${server.url}/oauth/device_authorization`,
      token_endpoint: `${server.url}/oauth/token`,
      revocation_endpoint: `${server.url}/oauth/revoke`,
      grant_types_supported: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
      response_types_supported: [],
      token_endpoint_auth_methods_supported: ["none"],
    });
    const behind = { headers: { "x-forwarded-proto": "https", host: "localhost:4141" } };
    const proxied = (await (await fetch(`${server.url}/.well-known/oauth-authorization-server`, behind)).json()) as {
      issuer: string;
    };
    expect(proxied.issuer).toStartWith("https://localhost");
  });

  test("a member confirms the code; the tool gets a key that spends the member's accounts, at every server", async () => {
    const tool = toolAt(server);
    const waiting = await tool.begin();
    expect(await tool.poll(waiting.device_code)).toMatchObject({ status: 400, error: "authorization_pending" });
    const begun = await tool.begin();
    expect(begun).toMatchObject({ interval: 5, verification_uri_complete: expect.stringContaining(begun.user_code) });
    const confirmed = await (await browserOf(other, anna.key)).decide(begun.user_code.toLowerCase().replace("-", " "));
    expect(confirmed).toMatchObject({ status: 303, location: "/admin/device?done=confirmed" });
    expect(confirmed.text).toContain("claude-code");
    const tokens = await toolAt(other).poll(begun.device_code);
    expect(tokens).toMatchObject({ status: 200, token_type: "Bearer", email: "anna", expires_in: 3_600 });
    for (const each of [server, other]) {
      const answer = await toolAt(each).ask(tokens.access_token);
      expect(answer.status).toBe(200);
      await answer.text();
    }
    const { items } = await server.app.history.list({ key_name: "anna/claude-code" }, 10);
    await until(
      async () => (await server.app.history.list({ key_name: "anna/claude-code" }, 10)).items.length === 2,
      "the rows are there",
    );
    expect(items.every(({ account_id }) => account_id === "anna-octo")).toBe(true);
    // A refresh token opens nothing, and neither does the name of the key in the access token.
    expect((await tool.ask(tokens.refresh_token)).status).toBe(401);
    expect(
      (await tool.ask(tokens.access_token.slice(0, -1) + (tokens.access_token.endsWith("A") ? "B" : "A"))).status,
    ).toBe(401);
  });

  test("a token serves at once at the other server", async () => {
    const dan = await server.addMember("dan", "dan-octo");
    const { access_token } = await signedInTool(other, dan.key);
    expect((await toolAt(server).ask(access_token)).status).toBe(200);
    const unsigned = access_token.slice(0, -4) + (access_token.endsWith("AAAA") ? "BBBB" : "AAAA");
    expect((await toolAt(server).ask(unsigned)).status).toBe(401);
  });

  test("a refresh gives other tokens; who leaves gets invalid_grant, and no request is served", async () => {
    const ben = await server.addMember("ben", "ben-octo");
    const tool = toolAt(server);
    const first = await signedInTool(server, ben.key);
    const second = await toolAt(other).refresh(first.refresh_token);
    expect(second).toMatchObject({ status: 200, email: "ben" });
    expect(second.refresh_token).not.toBe(first.refresh_token);
    // Other processes of the tool still have the first one.
    for (const { access_token } of [first, second]) expect((await tool.ask(access_token)).status).toBe(200);
    await other.stores.members.remove("ben");
    await until(async () => (await tool.ask(second.access_token)).status === 401, "the other server knows");
    const refused = await tool.ask(second.access_token);
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(await tool.refresh(second.refresh_token)).toMatchObject({ status: 401, error: "invalid_grant" });
  });

  test("the key of a sign-in is listed, and revoking it or signing out ends it", async () => {
    const tool = toolAt(server);
    const tokens = await signedInTool(server, anna.key, "laptop of anna");
    const page = await (await (await browserOf(server, anna.key)).get("/admin/keys")).text();
    expect(page).toContain("laptop of anna");
    expect((await postForm(`${server.url}/oauth/revoke`, { token: tokens.access_token })).status).toBe(200);
    expect((await tool.ask(tokens.access_token)).status).toBe(401);
    expect(await tool.refresh(tokens.refresh_token)).toMatchObject({ error: "invalid_grant" });
    expect((await postForm(`${server.url}/oauth/revoke`, { token: "unknown" })).status).toBe(200);
  });

  test("a sign-in that nobody renews for 30 days is over, and takes no room from other keys", async () => {
    const cleo = await server.addMember("cleo", "cleo-octo");
    const [used, forgotten] = [
      await signedInTool(server, cleo.key, "used"),
      await signedInTool(server, cleo.key, "forgotten"),
    ];
    const add = (name: string) =>
      server.stores.members.createKey(cleo.id, { name, models: null, expiresAt: null, by: sha256(cleo.key) });
    for (let count = 3; count < maxMemberKeys; count += 1) await add(`spare ${count}`);
    await expect(add("one too many")).rejects.toThrow(`${maxMemberKeys} keys already`);
    await askTables(
      server,
      ({ now }) => sql`UPDATE dragoman.logins SET renewed_at_ms = ${now} - ${31 * dayMs}
        WHERE key IN (SELECT sha256 FROM dragoman.keys WHERE name = 'forgotten')`,
    );
    expect(await toolAt(server).refresh(forgotten.refresh_token)).toMatchObject({ error: "invalid_grant" });
    await add("in its place");
    await until(async () => (await toolAt(other).ask(forgotten.access_token)).status === 401, "it is refused");
    expect(await toolAt(other).refresh(used.refresh_token)).toMatchObject({ status: 200 });
  });

  test("the tool may do no more than the key with which the member confirmed it", async () => {
    const key = await server.stores.members.createKey(anna.id, {
      name: "small",
      models: ["gpt-4.1"],
      expiresAt: Date.now() + 86_400_000,
      by: sha256(anna.key),
    });
    const tokens = await signedInTool(server, key, "limited tool");
    await server.stores.members.hear([tokens.access_token]);
    const own = server.stores.members.findKey([tokens.access_token])!;
    expect(own).toMatchObject({ models: ["gpt-4.1"], member: anna.id, name: "anna/limited tool" });
    expect((await toolAt(server).ask(tokens.access_token, "gpt-5.4")).status).toBe(403);
  });

  test("the settings come with a checksum as Claude Code computes it, and 304 while they are the same", async () => {
    const { access_token } = await signedInTool(server, anna.key, "settings");
    const get = (headers: Record<string, string> = {}) =>
      fetch(`${server.url}/managed/settings`, { headers: { authorization: `Bearer ${access_token}`, ...headers } });
    await server.app.config.change({
      claudeCodeSettings: { permissions: { deny: ["Bash(curl:*)"] }, env: { B: "2" } },
      budgets: [{ name: "each", unit: "credits", limit: 10, per: "day", each: "member" }],
    });
    const answer = await get();
    const { checksum, settings } = (await answer.json()) as { checksum: string; settings: Record<string, unknown> };
    expect(settings).toMatchObject({
      permissions: { deny: ["Bash(curl:*)"] },
      env: { B: "2", CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1" },
      companyAnnouncements: ["Budget each: 10 credits a day."],
    });
    expect(settings.model).toStartWith("claude-sonnet-");
    expect(JSON.stringify(settings)).not.toContain("ANTHROPIC_AUTH_TOKEN");
    const canonical = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(canonical)
        : value && typeof value === "object"
          ? Object.fromEntries(
              Object.keys(value)
                .sort()
                .map((name) => [name, canonical((value as Record<string, unknown>)[name])]),
            )
          : value;
    expect(checksum).toBe(`sha256:${sha256(JSON.stringify(canonical(settings))).toString("hex")}`);
    expect(answer.headers.get("etag")).toBe(`"${checksum}"`);
    expect((await get({ "if-none-match": `"${checksum}"` })).status).toBe(304);
    expect((await get({ "if-none-match": '"sha256:other"' })).status).toBe(200);
    expect((await get({ "if-none-match": "*" })).status).toBe(200);
    expect((await fetch(`${server.url}/managed/settings`)).status).toBe(401);
    const used = await fetch(`${server.url}/api/oauth/usage`, { headers: { authorization: `Bearer ${access_token}` } });
    expect(await used.json()).toMatchObject({
      extra_usage: { monthly_limit: 10, used_credits: expect.any(Number), currency: "USD" },
      limits: [{ group: "daily", resets_at: expect.stringContaining("T00:00:00"), is_active: true }],
    });
  });

  test("telemetry is counted by its kind", async () => {
    const { access_token } = await signedInTool(server, anna.key, "telemetry");
    for (const kind of ["metrics", "logs", "traces", "logs"]) {
      const init = { method: "POST", headers: { authorization: `Bearer ${access_token}` }, body: "\u0001secret" };
      expect((await fetch(`${server.url}/v1/${kind}`, init)).status).toBe(200);
    }
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain('dragoman_client_telemetry_total{kind="logs"} 2');
  });
});
