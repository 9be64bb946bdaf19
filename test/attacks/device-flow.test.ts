/** Scenario: attacks on the sign-in of tools: phishing, guessing, replay, fixation, mix-up; device codes and refresh tokens have 256 bits. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { sha256 } from "../../src/lib/net/in/credentials";
import { words } from "../../src/lib/sql";
import { newUserCode, readUserCode, toolName } from "../../src/people/keys/logins";
import { browserOf, postForm, signedInTool, toolAt } from "../support/device-login";
import { fieldsIn } from "../support/form-fields";
import { askTables, type TestMember } from "../support/members";
import { startTeamApp, type TeamApp } from "../support/team-app";
import { describeWithMembers } from "../support/teams";

describeWithMembers("attacks on the sign-in of tools", (place) => {
  let server: TeamApp;
  let anna: TestMember;
  beforeAll(async () => {
    server = await startTeamApp(place);
    anna = await server.addMember("anna", "anna-octo");
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  const ask = (statement: string) => askTables(server, () => words(statement));
  const elsewhere = { "x-forwarded-for": "203.0.113.9" };

  test("phishing: a link with the attacker's code shows where it began, warns, and confirms nothing by itself", async () => {
    const tool = toolAt(server);
    const { device_code, user_code } = await tool.begin("<b>Your bank</b>", elsewhere);
    await ask(`UPDATE dragoman.device_logins SET network = '203.0.113.9' WHERE user_code = '${user_code}'`);
    const browser = await browserOf(server, anna.key);
    const text = await (await browser.get(`/admin/device?user_code=${user_code}`)).text();
    expect(text).toContain("203.0.113.9");
    expect(text).toContain("It began at another address than yours");
    expect(text).not.toContain("<b>Your bank");
    await ask(`UPDATE dragoman.device_logins SET network = 'unknown' WHERE user_code = '${user_code}'`);
    const nameless = await (await browser.get(`/admin/device?user_code=${user_code}`)).text();
    expect(nameless).toContain("an address that is not known");
    expect(await tool.poll(device_code)).toMatchObject({ error: "authorization_pending" });
    // Another site's link does not even show the code to a member who is signed in.
    const linked = await fetch(`${server.url}/admin/device?user_code=${user_code}`, {
      headers: { cookie: browser.cookie, "sec-fetch-site": "cross-site" },
    });
    expect(await linked.text()).not.toContain("This is my tool");
  });

  test("forms of other sites, and without the page's token, confirm nothing", async () => {
    const tool = toolAt(server);
    const { device_code, user_code } = await tool.begin();
    const { cookie } = await browserOf(server, anna.key);
    const forged = [
      await postForm(`${server.url}/admin/device`, { user_code }, { cookie }),
      await postForm(`${server.url}/admin/device`, { user_code, form_token: "x" }, { cookie }),
      await postForm(`${server.url}/admin/device`, { user_code }, { cookie, origin: "https://evil.example" }),
      await postForm(`${server.url}/admin/device`, { user_code }),
    ];
    expect(forged.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    expect(await tool.poll(device_code)).toMatchObject({ error: "authorization_pending" });
    const begun = await postForm(`${server.url}/oauth/device_authorization`, {}, { origin: "https://evil.example" });
    expect(begun.status).toBe(403);
  });

  test("the form of one member's page is of no use in another's browser", async () => {
    const mallory = await server.addMember("mallory", "mallory-octo");
    const { user_code, device_code } = await toolAt(server).begin();
    const own = await browserOf(server, mallory.key);
    const { decision: _, ...form } = await fieldsIn(
      await (await own.get(`/admin/device?user_code=${user_code}`)).text(),
    );
    const { cookie } = await browserOf(server, anna.key);
    expect((await postForm(`${server.url}/admin/device`, { ...form, user_code }, { cookie })).status).toBe(403);
    expect(await toolAt(server).poll(device_code)).toMatchObject({ error: "authorization_pending" });
  });

  test("user codes cannot be guessed: ten wrong ones, and the member is refused for a while", async () => {
    const guesser = await server.addMember("guesser", "guesser-octo");
    const browser = await browserOf(server, guesser.key);
    const { user_code } = await toolAt(server).begin();
    const answers: number[] = [];
    for (let tries = 0; tries < 10; tries++)
      answers.push((await browser.get(`/admin/device?user_code=${newUserCode()}`)).status);
    expect(answers).toEqual(Array(10).fill(404));
    expect((await browser.get(`/admin/device?user_code=${user_code}`)).status).toBe(429);
    // Who is not signed in learns nothing of any code.
    const nobody = await fetch(`${server.url}/admin/device?user_code=${user_code}`, { headers: elsewhere });
    expect([nobody.status, (await nobody.text()).includes("This is my tool")]).toEqual([401, false]);
  });

  test("user codes have 34 bits and no vowels; what a person types is read in any form", () => {
    const codes = new Set(Array.from({ length: 200 }, newUserCode));
    expect(codes.size).toBe(200);
    for (const code of codes) expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(readUserCode(" wdjb mjht ")).toBe("WDJB-MJHT");
    for (const wrong of ["", "WDJB-MJH", "WDJB-MJHTT", "AEIO-UAEI", "' OR 1=1 --"])
      expect(readUserCode(wrong)).toBeUndefined();
    expect(
      ["claude_code", null, "../../etc", "💥\n", "a".repeat(99)].map((each) => toolName(each).length > 50),
    ).not.toContain(true);
    expect([toolName("claude_code"), toolName(null), toolName("💥\n")]).toEqual(["claude-code", "tool", "tool"]);
  });

  test("the same wrong refresh token is refused after ten tries from one network", async () => {
    const guess = () =>
      postForm(`${server.url}/oauth/token`, { grant_type: "refresh_token", refresh_token: "drr_x" }, elsewhere);
    for (let tries = 0; tries < 10; tries++) expect((await guess()).status).toBe(401);
    const last = await guess();
    expect([last.status, await last.json()]).toMatchObject([429, { error: "slow_down" }]);
    // A tool that is signed in sends no guess, and goes on behind the same address.
    const { access_token } = await signedInTool(server, anna.key);
    const headers = { ...elsewhere, authorization: `Bearer ${access_token}` };
    expect((await fetch(`${server.url}/api/admin/budgets`, { headers })).status).toBe(200);
  });

  test("a device code works once, and a replayed refresh token ends the sign-in for everybody who has it", async () => {
    const tool = toolAt(server);
    const { device_code, user_code } = await tool.begin();
    await (await browserOf(server, anna.key)).decide(user_code);
    const first = await tool.poll(device_code);
    expect(first.status).toBe(200);
    expect(await tool.poll(device_code)).toMatchObject({ status: 400, error: "invalid_grant" });
    const second = await tool.refresh(first.refresh_token);
    expect(second.status).toBe(200);
    // The answer may have been lost: for a minute the same is asked again.
    const third = await tool.refresh(first.refresh_token);
    expect(third.status).toBe(200);
    await ask("UPDATE dragoman.logins SET renewed_at_ms = renewed_at_ms - 120000");
    expect(await tool.refresh(second.refresh_token)).toMatchObject({ status: 401, error: "invalid_grant" });
    expect(await tool.refresh(third.refresh_token)).toMatchObject({ status: 401, error: "invalid_grant" });
    expect((await tool.ask(third.access_token)).status).toBe(401);
  });

  test("fixation: a tool is told whose account it got", async () => {
    const mallory = await server.addMember("mallory-2", "mallory-2-octo");
    expect(await signedInTool(server, mallory.key)).toMatchObject({ email: "mallory-2" });
  });

  test("mix-up: another team knows neither codes nor tokens of this one", async () => {
    await using strangers = await startTeamApp(place);
    const ben = await strangers.addMember("ben", "ben-octo");
    const tokens = await signedInTool(server, anna.key);
    expect((await toolAt(strangers).ask(tokens.access_token)).status).toBe(401);
    expect(await toolAt(strangers).refresh(tokens.refresh_token)).toMatchObject({ error: "invalid_grant" });
    const { user_code } = await toolAt(server).begin();
    expect(await (await browserOf(strangers, ben.key)).decide(user_code)).toMatchObject({ status: 404 });
    // A token for another key, with the signature of this one.
    const [, , until, signature] = /^drs_([^.]+)\.([^.]+)\.(.+)$/.exec(tokens.access_token)!;
    const forged = `drs_${sha256(anna.key).toString("base64url")}.${until}.${signature}`;
    expect((await toolAt(server).ask(forged)).status).toBe(401);
  });

  test("a code that was denied or has expired gives nothing, and one that is polled too fast slows down", async () => {
    const tool = toolAt(server);
    const browser = await browserOf(server, anna.key);
    const denied = await tool.begin();
    expect(await browser.decide(denied.user_code, "deny")).toMatchObject({ location: "/admin/device?done=denied" });
    expect(await tool.poll(denied.device_code)).toMatchObject({ error: "access_denied" });
    const late = await tool.begin();
    await ask(`UPDATE dragoman.device_logins SET expires_at_ms = 0 WHERE user_code = '${late.user_code}'`);
    expect(await browser.decide(late.user_code)).toMatchObject({ status: 404 });
    expect(await tool.poll(late.device_code)).toMatchObject({ error: "expired_token" });
    const fast = await tool.begin();
    await tool.poll(fast.device_code);
    expect(await tool.poll(fast.device_code)).toMatchObject({ error: "slow_down" });
  });

  test("a key that is revoked between the confirmation and the tool's question gives nothing", async () => {
    const tool = toolAt(server);
    const by = sha256(anna.key);
    const key = await server.stores.members.createKey(anna.id, { name: "short", models: null, expiresAt: null, by });
    const { device_code, user_code } = await tool.begin();
    await (await browserOf(server, key)).decide(user_code);
    await server.stores.members.revokeKey(anna.id, "short");
    expect(await tool.poll(device_code)).toMatchObject({ error: "access_denied" });
  });

  test("sign-ins that nobody confirms are bounded for each network", async () => {
    const begin = () => server.app.logins!.begin("tool", "198.51.100.7");
    for (let count = 0; count < 30; count += 1) await begin();
    const begun = await begin().catch((thrown) => thrown);
    expect(begun.details.code).toBe("slow_down");
    expect((await toolAt(server).begin()).user_code).toBeString();
  });
});
