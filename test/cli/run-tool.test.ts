/** Scenario: `dragoman run` where a server and a tool are processes: both end together, and nothing is left behind. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { program, run } from "../support/command";
import { temporaryFolder } from "../support/temporary-folder";
import { usedDemo } from "../support/used-demo";

interface Ran {
  code: number;
  stderr: string;
  /** The address that the tool was started with, and how the server there answered it. */
  told?: { url: string; health: number };
  /** The folder of the person, without the data folder. */
  left: string[];
  /** The address of the server that ran before. */
  beside?: string;
}

/**
 * Runs with a program in the place of Claude Code, which asks the server.
 * @param endBy The signal that the tool sends to who started it, and then waits.
 * @param beside The options of a server that runs before, if one does.
 */
async function runs(words: string[], endBy?: string, beside?: string[]): Promise<Ran> {
  const home = temporaryFolder();
  const [bin, temporary, told] = [join(home, "bin"), join(home, "tmp"), join(home, "told.json")];
  for (const folder of [bin, temporary]) mkdirSync(folder);
  const script = `#!${process.execPath}
const url = (await Bun.file(process.argv[3]).json()).env.ANTHROPIC_BASE_URL;
await Bun.write(${JSON.stringify(told)}, JSON.stringify({ url, health: (await fetch(url + "/health")).status }));
if (process.env.END_BY) {
  process.kill(process.ppid, process.env.END_BY);
  await Bun.sleep(20_000);
}
process.exit(7);
`;
  writeFileSync(join(bin, "claude"), script, { mode: 0o700 });
  const own = { PATH: bin, HOME: home, TMPDIR: temporary, DRAGOMAN_HOME: usedDemo(join(home, "data")) };
  const env = { ...own, ...(endBy && { END_BY: endBy }) };
  const other = beside && run(["start", "--demo", "--json", "--port", "0", ...beside], { env });
  const ready = await other?.ready();
  const pipes = { stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const;
  const child = Bun.spawn([...program, "run", ...words], { cwd: home, env, ...pipes, timeout: 30_000 });
  const [stderr, code] = await Promise.all([child.stderr.text(), child.exited]);
  const noted = existsSync(told) ? await Bun.file(told).json() : undefined;
  const left = [...readdirSync(home), ...readdirSync(temporary)].filter(
    (each) => !/^(?:bin|tmp|data|told\.json|\.bun)$/.test(each),
  );
  await other?.[Symbol.asyncDispose]();
  return { code, stderr, told: noted, left, beside: ready?.url };
}

test.each<[signal: string, code: number, beside: string[] | undefined]>([
  ["SIGTERM", 143, undefined],
  // A server that ends with another program is not used.
  ["SIGHUP", 129, ["--parent-pid", String(process.pid)]],
  ["", 7, undefined],
])("after %j the tool, its settings with the key, and its server have ended: code %p", async (signal, code, beside) => {
  const ran = await runs(["claude-code", "--demo"], signal, beside);
  expect([ran.code, ran.told?.health, ran.left]).toEqual([code, 200, []]);
  expect(ran.stderr).toContain("DEMO");
  expect(ran.told!.url).not.toBe(ran.beside!);
  expect(await fetch(`${ran.told!.url}/health`).catch(() => "gone")).toBe("gone");
});

test("a server that cannot be started says why", async () => {
  const { code, stderr } = await runs(["claude-code"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("auth` to sign in")]);
});
