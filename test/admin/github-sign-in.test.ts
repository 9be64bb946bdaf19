/** Scenario: a member signs in to the pages with GitHub, by an app of the owner's: whose account the browser has, and nobody else's. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { stateOf } from "../../src/people/accounts/web-flow";
import { toolAt } from "../support/device-login";
import { fieldsIn } from "../support/form-fields";
import type { TestMember } from "../support/members";
import { startTeamApp, type TeamApp } from "../support/team-app";
import { describeWithMembers, individuals } from "../support/teams";

const own = { DRAGOMAN_OAUTH_APP: "Iv23ofThisTeam", DRAGOMAN_OAUTH_SECRET: "demo-client-secret" };

describeWithMembers("a sign-in with GitHub", (place) => {
  let server: TeamApp;
  let anna: TestMember;
  beforeAll(async () => {
    server = await startTeamApp(place, { env: own });
    anna = await server.addMember("anna", "anna-octo");
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  /** From another machine. */
  const get = (url: string, cookie = "") =>
    fetch(url, { redirect: "manual", headers: { cookie, "x-forwarded-for": "203.0.113.7" } });
  const cookieOf = (answer: Response) => answer.headers.get("set-cookie")?.split(";")[0] ?? "";

  async function begin(next = "/admin") {
    const begun = await get(`${server.url}/admin/github?next=${encodeURIComponent(next)}`);
    return { address: new URL(begun.headers.get("location")!), cookie: cookieOf(begun) };
  }
  /** What GitHub leads a browser to that is signed in there as `login`. */
  async function allowed({ address }: { address: URL }, login: string): Promise<string> {
    const at = new URL(address);
    at.searchParams.set("login", login);
    return (await get(at.href)).headers.get("location")!;
  }
  async function signIn(login: string, next?: string) {
    const begun = await begin(next);
    const answer = await get(await allowed(begun, login), begun.cookie);
    return { status: answer.status, cookie: cookieOf(answer), text: await answer.text() };
  }

  test("opens the page that was asked for, where the member confirms a tool; it ends with the member's key", async () => {
    const tool = toolAt(server);
    const { user_code, device_code } = await tool.begin();
    const path = `/admin/device?user_code=${user_code}`;
    const asked = await (await get(server.url + path)).text();
    expect(asked).toContain(`href="/admin/github?next=${encodeURIComponent(path)}"`);
    const { address } = await begin(path);
    expect(Object.fromEntries(address.searchParams)).toEqual({
      client_id: own.DRAGOMAN_OAUTH_APP,
      redirect_uri: `${server.url}/admin/github/done`,
      state: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: "S256",
      allow_signup: "false",
    });
    const { status, text, cookie } = await signIn("anna-octo", path);
    expect([status, text.includes(`href="${path}"`)]).toEqual([200, true]);
    const page = await (await get(server.url + path, cookie)).text();
    expect(page).toContain("<strong>anna</strong>");
    const { decision: _, ...form } = await fieldsIn(page);
    await fetch(`${server.url}/admin/device`, {
      method: "POST",
      redirect: "manual",
      headers: { cookie, origin: server.url },
      body: new URLSearchParams({ ...form, user_code }),
    });
    expect(await tool.poll(device_code)).toMatchObject({ status: 200, email: "anna" });
    await server.stores.members.revokeKey(anna.id, "key-1");
    expect((await get(`${server.url}/admin/keys`, cookie)).status).toBe(401);
  });

  test("goes by the key that may do most, for the longest time", async () => {
    const { id, key } = await server.addMember("dora", "dora-octo");
    const make = (wanted: object) =>
      fetch(`${server.url}/api/admin/keys`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": key },
        body: JSON.stringify(wanted),
      });
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    for (const wanted of [
      { name: "limited", models: ["gpt-*"] },
      { name: "short", expires_at: soon },
    ])
      expect((await make(wanted)).status).toBe(200);
    const { cookie } = await signIn("dora-octo");
    const page = async () => (await get(`${server.url}/admin/keys`, cookie)).status;
    for (const name of ["limited", "short"]) await server.stores.members.revokeKey(id, name);
    expect(await page()).toBe(200);
    await server.stores.members.revokeKey(id, "key-1");
    expect(await page()).toBe(401);
  });

  test("that GitHub does not end is told as such, and gives nothing", async () => {
    server.demo.intercept("/login/oauth/access_token", () => Response.json({}));
    const { status, text, cookie } = await signIn("anna-octo");
    expect([status, cookie]).toEqual([502, ""]);
    expect(text).toContain("answer has no token (status 200); try again later.");
  });

  test("is nobody's but that of the browser which began it, with the account that it has now", async () => {
    await server.addMember("ben", "ben-octo");
    // Where the way back leads is a page of ours.
    for (const next of ["https://evil.example/", "//evil.example", "/admin/../x"]) {
      const { status, text } = await signIn("ben-octo", next);
      expect([status, text.includes('href="/admin"')]).toEqual([200, true]);
    }
    const [one, other] = [await begin(), await begin()];
    const back = await allowed(one, "ben-octo");
    const tries: Record<string, () => Promise<{ status: number }>> = {
      "a browser that began nothing": () => get(back),
      "a browser that began another": () => get(back, other.cookie),
      // Somebody's own code and a state that anybody can compute would sign this browser in as them.
      "a browser that began nothing, with a state made for that": async () => {
        const { address } = await begin();
        const challenge = new Bun.CryptoHasher("sha256").update("").digest("base64url");
        address.searchParams.set("code_challenge", challenge);
        address.searchParams.set("state", stateOf(""));
        return get(await allowed({ address }, "ben-octo"));
      },
      "a code of another flow": async () => {
        const stolen = new URL(await allowed(other, "ben-octo"));
        stolen.searchParams.set("state", new URL(back).searchParams.get("state")!);
        return get(stolen.href, one.cookie);
      },
      "a code that was used": async () => {
        const used = await begin();
        const at = await allowed(used, "ben-octo");
        expect((await get(at, used.cookie)).status).toBe(200);
        return get(at, used.cookie);
      },
      "no code": async () => get(back.replace(/code=\w+/, "error=access_denied"), one.cookie),
      "an account of nobody": async () => {
        server.demo.accounts.push(...individuals("stranger"));
        return signIn("stranger");
      },
      "a login that its member has given up, and a stranger has taken": async () => {
        const account = server.demo.accounts.find(({ login }) => login === "ben-octo")!;
        account.login = "ben-renamed";
        const [taken] = individuals("taken");
        server.demo.accounts.push({ ...taken!, login: "ben-octo" });
        return signIn("ben-octo");
      },
      "a member without a key": async () => {
        await server.addMember("cleo", "cleo-octo");
        await server.stores.members.revokeKey(server.stores.members.named("cleo")!.id, "key-1");
        return signIn("cleo-octo");
      },
      "a member who was removed": async () => {
        await server.addMember("dan", "dan-octo");
        await server.stores.members.remove("dan");
        return signIn("dan-octo");
      },
    };
    const answers: Record<string, number> = {};
    for (const [name, attempt] of Object.entries(tries)) answers[name] = (await attempt()).status;
    const wrongCode = ["a code of another flow", "a code that was used"];
    expect(answers).toEqual(
      Object.fromEntries(Object.keys(tries).map((name) => [name, wrongCode.includes(name) ? 401 : 403])),
    );
  });

  test("is offered only with the secret of an app of the owner's", async () => {
    for (const env of [{ ...own, DRAGOMAN_OAUTH_APP: "vscode" }, undefined]) {
      await using other = await startTeamApp(place, env && { env });
      await other.addMember("anna", "anna-octo");
      expect((await get(`${other.url}/admin/github`)).status).toBe(404);
      expect(await (await get(`${other.url}/admin`, "")).text()).not.toContain("/admin/github");
    }
  });
});
