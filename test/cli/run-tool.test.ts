/** Scenario: `dragoman run`: a tool gets everything for one process, and nothing is left behind. */
import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { program, run } from "../support/command";

interface Ran {
  code: number;
  stderr: string;
  /** What the tool was started with. */
  told: { args: string[]; env: Record<string, string>; settings?: Record<string, unknown>; health?: number };
  /** The folder of the person, without the data folder. */
  left: string[];
  /** The address of the server that ran before. */
  beside?: string;
}

/**
 * Runs with a program in the tool's place, which says what it got, asks the server, and ends with 7.
 * @param beside The options of a server that runs before, if one does.
 */
async function runs(name: string, words: string[], own: Record<string, string> = {}, beside?: string[]): Promise<Ran> {
  const home = mkdtempSync(join(tmpdir(), "dragoman-home-"));
  const bin = join(home, "bin");
  const temporary = join(home, "tmp");
  for (const folder of [bin, temporary, join(home, "data")]) mkdirSync(folder);
  const script = `#!${process.execPath}
const args = process.argv.slice(2);
const at = args.indexOf("--settings");
const file = at < 0 ? process.env.GEMINI_CLI_SYSTEM_SETTINGS_PATH : args[at + 1];
const settings = file && JSON.parse(await Bun.file(file).text());
const url = settings?.env?.ANTHROPIC_BASE_URL ?? process.env.GOOGLE_GEMINI_BASE_URL ?? /http:[^"]+:\\d+/.exec(args.join(" "))?.[0];
const health = (await fetch(url + "/health")).status;
await Bun.write(${JSON.stringify(join(home, "told.json"))}, JSON.stringify({ args, env: process.env, settings, health }));
if (process.env.END_BY) {
  process.kill(process.ppid, process.env.END_BY);
  await Bun.sleep(20_000);
}
process.exit(7);
`;
  writeFileSync(join(bin, name), script);
  chmodSync(join(bin, name), 0o700);
  const env = { PATH: bin, HOME: home, TMPDIR: temporary, DRAGOMAN_HOME: join(home, "data"), ...own };
  const other = beside && run(["start", "--demo", "--json", "--port", "0", ...beside], { env });
  const ready = await other?.ready();
  const child = Bun.spawn([...program, "run", ...words], {
    cwd: home,
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 30_000,
  });
  const [stderr, code] = await Promise.all([child.stderr.text(), child.exited]);
  const file = join(home, "told.json");
  const told = existsSync(file) ? await Bun.file(file).json() : { args: [], env: {} };
  const left = [...readdirSync(home), ...readdirSync(temporary)].filter(
    (each) => !/^(?:bin|tmp|data|told\.json|\.bun)$/.test(each),
  );
  await other?.[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
  return { code, stderr, told, left, beside: ready?.url };
}

test("Claude Code gets settings that go before its own, its arguments, and a server that ends with it", async () => {
  const { code, stderr, told, left } = await runs("claude", [
    "claude-code",
    "--demo",
    "--",
    "-p",
    "hello",
    "--model",
    "x",
  ]);
  expect([code, stderr]).toEqual([7, expect.stringContaining("DEMO")]);
  expect(told.args.slice(2)).toEqual(["-p", "hello", "--model", "x"]);
  expect(told.health).toBe(200);
  const { env } = told.settings as { env: Record<string, string> };
  expect(env).toMatchObject({ ANTHROPIC_MODEL: expect.stringMatching(/^claude-sonnet-/), ENABLE_TOOL_SEARCH: "true" });
  expect(left).toEqual([]);
  expect(await fetch(`${env.ANTHROPIC_BASE_URL}/health`).catch(() => "gone")).toBe("gone");
});

test("Codex gets options, and its key by the environment: arguments can be read by others", async () => {
  const key = "a-client-key-of-the-owner-55";
  const own = { DRAGOMAN_API_KEY: key };
  const { code, told } = await runs(
    "codex",
    ["codex", "--demo", "--model", exampleModels.gpt, "--", "exec", "hello"],
    own,
  );
  expect(code).toBe(7);
  expect(told.args).toEqual(
    expect.arrayContaining([`model="${exampleModels.gpt}"`, "features.api_key_model_discovery=true"]),
  );
  expect(told.args.slice(-2)).toEqual(["exec", "hello"]);
  expect(told.args.join(" ")).not.toContain(key);
  expect(told.args).toContain('model_providers.dragoman.env_key="DRAGOMAN_API_KEY"');
  expect(told.env.DRAGOMAN_API_KEY).toBe(key);
});

test("Gemini CLI gets the address by the environment and the rest by a file that does not stay", async () => {
  const { code, told, left } = await runs("gemini", ["gemini-cli", "--demo"]);
  expect([code, told.health, left]).toEqual([7, 200, []]);
  expect(told.settings).toMatchObject({ security: { auth: { selectedType: "gemini-api-key" } } });
});

test.each([
  [["--parent-pid", String(process.pid)], false],
  [[], true],
])("a server with %j, which does not end with another program, is used: %p", async (beside, isUsed) => {
  const { told, beside: url, code } = await runs("codex", ["codex", "--demo"], {}, beside);
  expect([code, told.health, told.args.join(" ").includes(`${url}/`)]).toEqual([7, 200, isUsed]);
});

test.each([
  ["SIGTERM", 143],
  ["SIGHUP", 129],
])("%s ends the tool, and its settings with the key do not stay", async (signal, code) => {
  const ran = await runs("claude", ["claude-code", "--demo"], { END_BY: signal });
  expect([ran.code, ran.told.health, ran.left]).toEqual([code, 200, []]);
});

test.each([
  [["zed"], 2, "Zed cannot be started with other settings than its own"],
  [["nothing"], 2, "There is no client `nothing`"],
  [[], 2, "Name a tool"],
  [["aider", "--demo"], 2, "`aider` is not installed"],
  [["codex", "--demo"], 2, "not installed, or not on the PATH. `npm install -g @openai/codex` installs it."],
  [["claude-code"], 1, "auth` to sign in"],
])("what cannot be started is said: %j", async (words, code, why) => {
  const ran = await runs("claude", words);
  expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(why)]);
});
