/** Scenario: `dragoman login`, `key print`, `connect --from` and `logout`, against a team elsewhere. */
import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sha256 } from "../../src/lib/net/in/credentials";
import { browserOf, signedInTool, toolAt } from "../support/device-login";
import { asProcess, inProcess } from "../support/in-process";
import { startTeamApp } from "../support/team-app";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

const server = await startTeamApp("folder");
const anna = await server.addMember("anna", "anna-octo");
const home = temporaryFolder(afterAll);
mkdirSync(join(home, ".claude"));
afterAll(() => server[Symbol.asyncDispose]());
const file = join(home, "data", "logins.json");
const saved = () => JSON.parse(readFileSync(file, "utf8"));
const env = { HOME: home, DRAGOMAN_HOME: join(home, "data") };
async function runs(...args: string[]) {
  const { code, stdout, stderr } = await inProcess(args, env);
  return { code, out: stdout.trim(), err: stderr };
}

/** Processes side by side. */
const threePrint = () => [1, 2, 3].map(() => asProcess(["key", "print"], env));

async function signIn() {
  const code = Promise.withResolvers<string>();
  const hears = (said: string) => {
    const [shown] = /[B-Z]{4}-[B-Z]{4}/.exec(said) ?? [];
    if (shown) code.resolve(shown);
  };
  const ended = inProcess(["login", server.url], env, { hears });
  await (await browserOf(server, anna.key)).decide(await code.promise);
  expect(await ended).toMatchObject({ code: 0 });
  return (await ended).stderr;
}

test("who is not signed in is told how; an address without TLS is refused", async () => {
  expect(await runs("key", "print")).toMatchObject({
    code: 2,
    out: "",
    err: expect.stringContaining("dragoman login"),
  });
  expect(await runs("login", "http://team.example")).toMatchObject({
    code: 2,
    err: expect.stringContaining("use https"),
  });
});

test("after `login`, `key print` prints a key that spends the member's accounts, and the file is private", async () => {
  const err = await signIn();
  expect(err).toContain(`Signed in at ${server.url} as anna`);
  expect(statSync(file).mode & 0o077).toBe(0);
  const { out, code } = await runs("key", "print", "--from", server.url);
  expect(code).toBe(0);
  expect((await toolAt(server).ask(out)).status).toBe(200);
}, 30_000);

/** The team's server, whose tokens are waited for. */
function slowed(wait: () => Promise<unknown>, instead?: () => Response) {
  let renewals = 0;
  const front = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const body = await request.text();
      if (pathname === "/oauth/token") {
        renewals += 1;
        await wait();
        if (instead) return instead();
      }
      return fetch(server.url + pathname, {
        method: request.method,
        headers: { "content-type": request.headers.get("content-type") ?? "" },
        body,
      });
    },
  });
  return { url: front.url.origin, renewals: () => renewals, [Symbol.asyncDispose]: () => front.stop(true) };
}
const saveAs = (address: string, leftMs: number) =>
  writeFileSync(file, JSON.stringify([{ ...saved()[0], address, expiresAt: Date.now() + leftMs }]), {
    mode: 0o600,
  });

test("while one process renews a key that is good for some minutes, the others print it and do not wait", async () => {
  const others = Promise.withResolvers<void>();
  await using slow = slowed(() => others.promise);
  saveAs(slow.url, 4 * 60_000);
  const { accessToken } = saved()[0];
  const printing = threePrint();
  let ended = 0;
  for (const each of printing) void each.then(() => ++ended === 2 && others.resolve());
  const printed = await Promise.all(printing);
  expect(printed.map(({ code, stderr }) => [code, stderr])).toEqual(Array(3).fill([0, ""]));
  expect(printed.filter(({ stdout }) => stdout.trim() === accessToken).length).toBe(2);
  expect(printed.filter(({ stdout }) => stdout.trim() === saved()[0].accessToken).length).toBe(1);
  expect(slow.renewals()).toBe(1);
}, 60_000);

test("a key that has ended is waited for by all, for as long as the server takes, and is renewed by one process", async () => {
  // Longer than a lock is waited for elsewhere.
  await using slow = slowed(() => Bun.sleep(6_000));
  saveAs(slow.url, 1_000);
  const [before] = saved();
  const printed = await Promise.all(threePrint());
  const [{ accessToken, refreshToken }] = saved();
  expect(printed.map(({ code, stdout }) => [code, stdout])).toEqual(Array(3).fill([0, `${accessToken}\n`]));
  expect([accessToken === before.accessToken, refreshToken === before.refreshToken]).toEqual([false, false]);
  expect((await toolAt(server).ask(accessToken)).status).toBe(200);
  expect(slow.renewals()).toBe(1);
}, 60_000);

test("a server that gives no tokens now ends no key that is good, and one that has ended is told", async () => {
  for (const instead of [
    () => Response.json({ error: "temporarily_unavailable" }, { status: 503 }),
    () => new Response("<h1>Back soon</h1>"),
  ]) {
    await using down = slowed(async () => {}, instead);
    saveAs(down.url, 4 * 60_000);
    expect(await runs("key", "print")).toMatchObject({ code: 0, out: saved()[0].accessToken });
    saveAs(down.url, 0);
    expect(await runs("key", "print")).toMatchObject({ code: 1, out: "" });
  }
  saveAs(server.url, 0);
  expect((await runs("key", "print")).code).toBe(0);
}, 60_000);

test("a second `login` ends the key of the first", async () => {
  const { accessToken } = saved()[0];
  const count = () => server.stores.members.keyCount(anna.id);
  const before = count();
  await signIn();
  expect([saved().length, count()]).toEqual([1, before]);
  await until(async () => (await toolAt(server).ask(accessToken)).status === 401, "the first key is refused");
  expect((await toolAt(server).ask(saved()[0].accessToken)).status).toBe(200);
}, 30_000);

test("`connect --from` gives Claude Code the command for its key, and other tools the key that is given", async () => {
  const claude = await runs("connect", "claude-code", "--write", "--from", server.url);
  expect(claude.code).toBe(0);
  const settings = JSON.parse(readFileSync(join(home, ".claude/settings.json"), "utf8"));
  expect(settings.apiKeyHelper).toBe(`dragoman key print --from ${server.url}`);
  expect(settings.env).toMatchObject({ ANTHROPIC_BASE_URL: server.url });
  expect(settings.env.ANTHROPIC_AUTH_TOKEN).toBeUndefined();
  // A token of an hour makes no key: the member does, on a page.
  const own = server.stores.members.clientKeysOf(anna.id).length;
  const refused = await runs("connect", "codex", "--write", "--from", server.url);
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining(`Make one on ${server.url}/admin/keys`) });
  expect(existsSync(join(home, ".codex"))).toBe(false);
  const printed = await runs("connect", "codex", "--from", server.url);
  expect([printed.code, printed.err]).toEqual([0, expect.stringContaining(`${server.url}/admin/keys`)]);
  expect(printed.out).not.toContain(saved()[0].accessToken);
  expect(server.stores.members.clientKeysOf(anna.id).length).toBe(own);
  const wanted = { name: "codex", models: null, expiresAt: null, by: sha256(anna.key) };
  const key = await server.stores.members.createKey(anna.id, wanted);
  const codex = ["connect", "codex", "--write", "--from", server.url];
  expect(await runs(...codex, "--key", key)).toMatchObject({ code: 0 });
  expect(readFileSync(join(home, ".codex/config.toml"), "utf8")).toContain(key);
  expect(await runs(...codex)).toMatchObject({ code: 0, err: expect.stringContaining("already has these settings") });
}, 60_000);

test("after `logout` the key is refused, and nothing is left", async () => {
  const { accessToken } = saved()[0];
  expect(await runs("logout")).toMatchObject({ code: 0, err: expect.stringContaining("its key is revoked") });
  expect(saved()).toEqual([]);
  expect((await toolAt(server).ask(accessToken)).status).toBe(401);
}, 30_000);

test("the data folder is dragoman's own after a login, so `uninstall --purge` removes it", async () => {
  expect(existsSync(file)).toBe(true);
  expect(await runs("uninstall", "--purge", "--yes")).toMatchObject({ code: 0 });
  expect(existsSync(join(home, "data"))).toBe(false);
});

test("a member who was removed is told so when the key would be renewed", async () => {
  const { access_token, refresh_token } = await signedInTool(server, anna.key);
  const known = { address: server.url, member: "anna", accessToken: access_token, refreshToken: refresh_token };
  await server.stores.members.remove("anna");
  mkdirSync(dirname(file), { mode: 0o700 });
  writeFileSync(file, JSON.stringify([{ ...known, expiresAt: 0 }]), { mode: 0o600 });
  expect(await runs("key", "print")).toMatchObject({ code: 1, out: "", err: expect.stringContaining("was removed") });
});
