/**
 * Scenario: one client key per connected tool: made, written, tried, and never needed by the commands on the owner's
 * machine.
 */
import { expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type ClientId, clientOf } from "../../src/clients/index";
import { clientStatus } from "../../src/clients/status";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { atTerminal } from "../support/terminal";
import { scriptedGithub } from "./bench";

const start = ["start", "--json", "--port", "0"];
const tools = ["claude-code", "codex", "opencode", "gemini-cli", "crush"] as const satisfies ClientId[];

/** A server with an account, and a person's home on the same machine. */
async function machine(config: object = {}) {
  const github = scriptedGithub();
  github.signIn("octo-demo");
  writeFileSync(join(github.data, "config.json"), JSON.stringify(config));
  const home = join(dirname(github.data), "person");
  mkdirSync(home, { recursive: true });
  // Bun's own cache would lie in the home.
  const env = { ...github.env, HOME: home, BUN_RUNTIME_TRANSPILER_CACHE_PATH: join(tmpdir(), "dragoman-transpiled") };
  const server = run(start, { env });
  const { url } = await server.ready();
  return {
    url,
    env,
    data: github.data,
    server,
    ended: (...args: string[]) => inProcess(args, env),
    path: (id: ClientId) => clientOf(id).file!.locate({ home, env: {} }),
    keysOf: (id: ClientId) => clientStatus(id, { home, env: {}, url }).keys?.map(({ value }) => value) ?? [],
    /** How the server answers each tool's own keys. */
    async statuses(ids: readonly ClientId[]) {
      const keys = ids.flatMap((id) => this.keysOf(id));
      const asked = keys.map(
        async (key) => (await fetch(`${url}/v1/models`, { headers: { "x-api-key": key } })).status,
      );
      return Promise.all(asked);
    },
    async names(): Promise<(string | null)[]> {
      const { items } = JSON.parse((await this.ended("key", "ls", "--json")).stdout) as { items: { name: string }[] };
      return items.map(({ name }) => name);
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await github[Symbol.asyncDispose]();
    },
  };
}

test("after `key add` with five connected tools, each gets a key of its own, all go on, and each file leads back to its bytes", async () => {
  await using own = await machine();
  const mine = `{\r\n\t"permissions": { "allow": [] } // mine\r\n}`;
  mkdirSync(dirname(own.path("claude-code")), { recursive: true });
  writeFileSync(own.path("claude-code"), mine);
  for (const id of tools) expect((await own.ended("connect", id, "--write", "--model", "gpt-5.3-codex")).code).toBe(0);
  const before = Object.fromEntries(tools.map((id) => [id, readFileSync(own.path(id), "utf8")]));

  const asked = await own.ended("key", "add", "laptop");
  expect(asked.stdout).toMatch(/^drg_[\w-]{43}\n$/);
  expect(asked.stderr).toContain("need a key now: Claude Code, Codex, opencode, Gemini CLI, Crush.");
  expect(asked.stderr).toContain("`dragoman connect codex --write` makes one");
  expect(new Set(await own.statuses(tools))).toEqual(new Set([401]));
  const refused = await own.ended("doctor");
  expect([refused.code, refused.stdout]).toEqual([1, expect.stringMatching(/failed +Claude Code .* refuses its key/)]);
  expect((await own.ended("connect")).stdout).toMatch(/^codex .* connected, but its key is refused$/m);

  const given = await own.ended("key", "add", "desktop", "--yes");
  expect(given.stdout).toMatch(/^drg_[\w-]{43}\n$/);
  expect(given.stderr).toContain("Created the client key `codex` and wrote it to ~/.codex/config.toml.");
  expect(new Set(await own.statuses(tools))).toEqual(new Set([200]));
  const keys = tools.map((id) => [...new Set(own.keysOf(id))]);
  expect(new Set(keys.flat()).size).toBe(5);
  expect(await own.names()).toEqual(["laptop", "desktop", ...tools]);
  for (const [id, [key]] of tools.map((id, at) => [id, keys[at]!] as const)) {
    expect(given.stderr).not.toContain(key!);
    const now = readFileSync(own.path(id), "utf8");
    // Only the key is another; the model that was chosen stays. Gemini CLI's is in its second file.
    if (id !== "gemini-cli" && id !== "codex") expect(now.replaceAll(key!, "unused")).toBe(before[id]!);
    expect(now).toContain("gpt-5.3-codex");
  }
  expect((await own.ended("doctor")).stdout).toMatch(/OK +Claude Code +\S+ points to dragoman\.$/m);

  const undone = await own.ended("connect", "claude-code", "--undo");
  expect(undone.stderr).toContain("The client key `claude-code` is still valid.");
  expect(readFileSync(own.path("claude-code"), "utf8")).toBe(mine);
  for (const id of tools.slice(1)) expect((await own.ended("connect", id, "--undo")).code).toBe(0);
  expect(tools.slice(1).filter((id) => existsSync(own.path(id)))).toEqual([]);
}, 120_000);

test("at a terminal, `key add` asks whether the connected tools shall get keys, and Enter means yes", async () => {
  await using own = await machine();
  await own.ended("connect", "codex", "--write");
  await using terminal = atTerminal(["key", "add", "laptop"], own.env);
  await terminal.shows("These connected tools need a key now: Codex.");
  await terminal.shows("Make a key for each and write it there? [Y/n]");
  terminal.type("\r");
  expect(await terminal.exited).toBe(0);
  expect(terminal.screen()).toContain("Created the client key `codex` and wrote it to ~/.codex/config.toml.");
  expect(await own.statuses(["codex"])).toEqual([200]);
});

test("where keys are asked for, `connect --write` makes one named after the tool, writes it, and keeps it the next time", async () => {
  await using own = await machine({ auth: { apiKeys: ["a-key-of-the-owner-0001"] } });
  const { code, stdout, stderr } = await own.ended("connect", "claude-code", "--write");
  expect([code, stderr]).toEqual([0, expect.stringContaining("Created the client key `claude-code`")]);
  expect(stderr).toMatch(/Answered in/);
  const [key] = own.keysOf("claude-code");
  expect(key).toMatch(/^drg_/);
  expect(stdout + stderr).not.toContain(key!);
  expect(await own.names()).toEqual([null, "claude-code"]);
  expect((await own.ended("connect", "claude-code", "--write")).stderr).toContain("already has these settings");
  expect(await own.names()).toEqual([null, "claude-code"]);

  // The file is gone, and with it the key: another one is made.
  await own.ended("connect", "claude-code", "--undo");
  await own.ended("connect", "claude-code", "--write");
  expect(await own.names()).toEqual([null, "claude-code", "claude-code-2"]);

  const wrong = await own.ended("connect", "codex", "--write", "--key", "not-a-key");
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining("does not accept the key of --key")]);
  expect(existsSync(own.path("codex"))).toBe(false);
  expect((await own.ended("connect", "codex", "--write", "--key", "a-key-of-the-owner-0001")).code).toBe(0);
  expect(own.keysOf("codex")).toEqual(["a-key-of-the-owner-0001"]);

  // A file that cannot be written leaves no key behind that nobody has.
  mkdirSync(dirname(own.path("crush")), { recursive: true });
  writeFileSync(own.path("crush"), "{}\n");
  chmodSync(own.path("crush"), 0o444);
  expect((await own.ended("connect", "crush", "--write")).code).toBe(1);
  expect(await own.names()).not.toContain("crush");
}, 60_000);

test("usage, models, printing and connecting need no client key on the owner's machine, and say what they cannot know", async () => {
  await using own = await machine();
  await own.ended("key", "add", "laptop");
  expect(await own.ended("usage", "--format", "{account}")).toMatchObject({ code: 0, stdout: "octo-demo\n" });
  expect(JSON.parse((await own.ended("usage", "--json")).stdout).accounts).toMatchObject([
    { id: "octo-demo", state: "ready", remaining: expect.any(Number), reset_at: expect.any(String) },
  ]);
  expect((await own.ended("models")).code).toBe(0);
  const printed = await own.ended("connect", "claude-code");
  expect([printed.code, printed.stderr]).toEqual([0, expect.stringContaining("asks for a client key")]);
  expect(printed.stdout).toContain("export ANTHROPIC_AUTH_TOKEN=YOUR_CLIENT_KEY");
  expect(await own.names()).toEqual(["laptop"]);
});

test("`usage --json` through the admin API says what GET /usage says", async () => {
  await using own = await machine();
  const told = JSON.parse((await own.ended("usage", "--json")).stdout);
  expect(told).toEqual(await (await fetch(`${own.url}/usage`)).json());
});

test("a key that is removed by a person at a terminal is asked about first, and what was done is said", async () => {
  await using own = await machine();
  await own.ended("key", "add", "laptop");
  {
    await using terminal = atTerminal(["key", "rm", "laptop"], own.env);
    await terminal.shows("Remove the client key laptop?");
    terminal.type("n\r");
    expect(await terminal.exited).toBe(1);
    expect(terminal.screen()).toContain("Nothing was removed.");
  }
  expect(await own.names()).toEqual(["laptop"]);
  await using terminal = atTerminal(["key", "rm", "laptop"], own.env);
  await terminal.shows("[y/N]");
  terminal.type("y\r");
  expect(await terminal.exited).toBe(0);
  expect(terminal.screen()).toContain("The client key laptop was removed.");
  expect(await own.names()).toEqual([]);
});

test("an undo asks at a terminal about the files that dragoman wrote, in lines that break no word, and else says that there is nothing", async () => {
  await using own = await machine();
  for (const [id, columns, question, key, code] of [
    [
      "gemini-cli",
      120,
      "Restore ~/.gemini/settings.json and ~/.gemini/.env as before dragoman wrote there? [y/N]",
      "\r",
      1,
    ],
    ["claude-code", 50, "Restore ~/.claude/settings.json as before\ndragoman wrote there? [y/N]", "y\r", 0],
  ] as const) {
    await own.ended("connect", id, "--write");
    await using terminal = atTerminal(["connect", id, "--undo"], own.env, undefined, columns);
    await terminal.shows(question);
    terminal.type(key);
    expect([await terminal.exited, existsSync(own.path(id))]).toEqual([code, code === 1]);
  }
  await using again = atTerminal(["connect", "claude-code", "--undo"], own.env);
  expect(await again.exited).toBe(0);
  expect(again.screen()).toBe("Nothing to undo: dragoman has not written to Claude Code's settings.\n");
});

test("a key of the environment stays the one of all tools: a new one would replace it", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using server = run(start, { env: { ...github.env, DRAGOMAN_API_KEY: "k-of-the-environment" } });
  await server.ready();
  const home = join(dirname(github.data), "person");
  mkdirSync(home, { recursive: true });
  const unknown = await inProcess(["connect", "codex", "--write"], { ...github.env, HOME: home });
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("set DRAGOMAN_API_KEY")]);
  const env = { ...github.env, HOME: home, DRAGOMAN_API_KEY: "k-of-the-environment" };
  expect((await inProcess(["connect", "codex", "--write"], env)).code).toBe(0);
  expect(readFileSync(join(home, ".codex", "config.toml"), "utf8")).toContain("k-of-the-environment");
});

test("while only the demo runs, a command that changes or shows the real config says so", async () => {
  await using demo = run(["start", "--demo", "--json", "--port", "0"]);
  await demo.ready();
  const env = { HOME: demo.home, DRAGOMAN_HOME: join(demo.home, "data") };
  const changes = "Only the demo is running: this changes your real config, which the demo does not use.";
  for (const [command, said] of [
    ["key add laptop", changes],
    ["budget add month --limit 20", changes],
    ["budget", "These are its budgets; `budget add` and `budget rm` change your real config."],
    ["key ls", "Only the demo is running: these are the keys of your real config"],
    ["key rm laptop", changes],
    ["budget rm month", changes],
  ] as const)
    expect((await inProcess(command.split(" "), env)).stderr).toContain(said);
});

test("no key is in Claude Code's file with --key-helper: it asks for the one that is kept here", async () => {
  await using own = await machine({ auth: { apiKeys: ["a-key-of-the-owner-0001"] } });
  const path = own.path("claude-code");
  const mine = `{\n  "env": { "ANTHROPIC_AUTH_TOKEN": "mine", "OWN": "stays" } // mine\n}\n`;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, mine);
  const { code, stdout, stderr } = await own.ended("connect", "claude-code", "--write", "--key-helper");
  expect([code, stderr]).toEqual([0, expect.stringContaining("which only you can read")]);
  const key = (await own.ended("key", "print", "claude-code")).stdout.trim();
  expect(key).toMatch(/^drg_/);
  const settings = JSON.parse(readFileSync(path, "utf8").replace("// mine", ""));
  expect(settings).toMatchObject({ apiKeyHelper: "dragoman key print claude-code", env: { OWN: "stays" } });
  expect(settings.env).not.toHaveProperty("ANTHROPIC_AUTH_TOKEN");
  expect(stdout + stderr).not.toContain(key);
  expect((await fetch(`${own.url}/v1/models`, { headers: { "x-api-key": key } })).status).toBe(200);
  const kept = join(own.data, "kept-keys.json");
  if (process.platform !== "win32") expect(statSync(kept).mode & 0o077).toBe(0);
  expect((await own.ended("doctor")).stdout).toMatch(
    /OK +Claude Code .*points to dragoman\. Its key is not in the file/,
  );

  expect((await own.ended("connect", "claude-code", "--undo")).code).toBe(0);
  expect(readFileSync(path, "utf8")).toBe(mine);
  expect(existsSync(kept)).toBe(false);
  expect((await own.ended("key", "print", "claude-code")).code).toBe(2);
  expect((await own.ended("connect", "codex", "--write", "--key-helper")).stderr).toContain(
    "only be used with --write",
  );
});

test("`key add` gives each tool its key, though another one's file cannot be written", async () => {
  await using own = await machine();
  for (const id of ["codex", "crush"] as const) await own.ended("connect", id, "--write");
  chmodSync(own.path("codex"), 0o444);
  const { code, stderr } = await own.ended("key", "add", "laptop", "--yes");
  expect([code, stderr]).toEqual([1, expect.stringContaining("is read-only")]);
  expect(stderr).toContain("Created the client key `crush`");
  expect(new Set(await own.statuses(["crush"]))).toEqual(new Set([200]));
  expect(await own.names()).toEqual(["laptop", "crush"]);
});

/** What the second file of Gemini CLI may be that cannot be written; as root too, which no mode keeps out. */
const hindered: [string, (path: string) => void][] = [
  ["read-only", (path) => writeFileSync(path, "OWN=1\n", { mode: 0o444 })],
  ["not text", (path) => writeFileSync(path, new Uint8Array([0xff, 0xfe]))],
  ["too large", (path) => writeFileSync(path, `#${" ".repeat(5_000_000)}`)],
  ["a folder", (path) => mkdirSync(path)],
  ["refused by the system", (path) => symlinkSync(longName(path), path)],
];
/** No temporary file with a longer name can be made beside it. */
const longName = (path: string) => join(dirname(path), "n".repeat(250));

test.each(hindered)("of two files, neither is written where one is %s, and no key stays", async (_, hinder) => {
  await using own = await machine({ auth: { apiKeys: ["a-key-of-the-owner-0001"] } });
  const path = own.path("gemini-cli");
  const mine = `{ "ui": { "theme": "GitHub" } } // mine\n`;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, mine, { mode: 0o640 });
  hinder(join(dirname(path), ".env"));
  const { code, stderr } = await own.ended("connect", "gemini-cli", "--write");
  expect([code, stderr]).toEqual([1, expect.stringMatching(/not changed|Nothing was changed/)]);
  expect(stderr).not.toContain("Created the client key");
  expect([readFileSync(path, "utf8"), statSync(path).mode & 0o777]).toEqual([mine, 0o640]);
  expect(await own.names()).toEqual([null]);
  expect(readdirSync(join(own.data, "connect")).filter((name) => name.startsWith("gemini-cli"))).toEqual([]);
});

test("of two files, neither is undone where one cannot be, and a key that was kept for one that was not written is forgotten", async () => {
  await using own = await machine({ auth: { apiKeys: ["a-key-of-the-owner-0001"] } });
  await own.ended("connect", "gemini-cli", "--write");
  const path = own.path("gemini-cli");
  const variables = join(dirname(path), ".env");
  const [settings, env] = [readFileSync(path, "utf8"), readFileSync(variables, "utf8")];
  const changed = settings.replace('"usageStatisticsEnabled": false', '"usageStatisticsEnabled": true');
  expect(changed).not.toBe(settings);
  writeFileSync(path, changed);
  const refused = await own.ended("connect", "gemini-cli", "--undo");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("was not changed")]);
  expect([readFileSync(path, "utf8"), readFileSync(variables, "utf8")]).toEqual([changed, env]);

  // The other way round: the first can be restored, and what the second leads to cannot be written.
  writeFileSync(path, settings);
  renameSync(variables, longName(variables));
  symlinkSync(longName(variables), variables);
  writeFileSync(longName(variables), `${env}THEIRS=1\n`);
  writeFileSync(path, JSON.stringify({ ...JSON.parse(settings), theirs: 1 }));
  const [before, code] = [readFileSync(path, "utf8"), (await own.ended("connect", "gemini-cli", "--undo")).code];
  expect([code, readFileSync(path, "utf8"), readFileSync(variables, "utf8")]).toEqual([1, before, `${env}THEIRS=1\n`]);

  const claude = own.path("claude-code");
  mkdirSync(dirname(claude), { recursive: true });
  writeFileSync(claude, "{}", { mode: 0o444 });
  expect((await own.ended("connect", "claude-code", "--write", "--key-helper")).code).toBe(1);
  expect(existsSync(join(own.data, "kept-keys.json"))).toBe(false);
  expect(await own.names()).toEqual([null, "gemini-cli"]);
});

test.each<[ClientId, before: string, between: (text: string) => string]>([
  ["claude-code", `{ "apiKeyHelper": "echo '-'" }`, (text) => text],
  ["claude-code", '{ "apiKeyHelper": "" }', (text) => text],
  ["codex", "", (text) => text.replace('model_provider = "dragoman"', 'model_provider = "openai"')],
  ["cline", "{}", (text) => text.replace('"lastUsedProvider": "openai-compatible"', '"lastUsedProvider": "cline"')],
  ["gemini-cli", "{}", (text) => text],
  ["zed", "{}", (text) => text],
])(
  "%s with %j: written again and again, it has one key, whatever else is set",
  async (id, before, between) => {
    await using own = await machine({ auth: { apiKeys: ["a-key-of-the-owner-0001"] } });
    mkdirSync(dirname(own.path(id)), { recursive: true });
    writeFileSync(own.path(id), before);
    Object.assign(own.env, { GOOGLE_GEMINI_BASE_URL: own.url });
    for (let count = 0; count < 3; count++) {
      expect((await own.ended("connect", id, "--write")).code).toBe(0);
      writeFileSync(own.path(id), between(readFileSync(own.path(id), "utf8")));
    }
    // Zed's file holds no key, so none is made for it.
    expect(await own.names()).toEqual(id === "zed" ? [null] : [null, id]);
    if (id === "claude-code")
      expect((await own.ended("doctor", "--client", id)).stdout).not.toContain("Its key is not in the file");
  },
  60_000,
);
