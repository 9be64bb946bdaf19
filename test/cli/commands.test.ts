/** Scenario: the commands as the command line has them: each tells its help, and none is named that is not there. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { version } from "../../package.json";
import { usageOf } from "../../src/cli/command";
import { commands } from "../../src/cli/commands";
import { asProcess, inProcess } from "../support/in-process";
import { drawn } from "../support/random";
import { fixtures } from "../support/streams";
import { atTerminal } from "../support/terminal";
import { scriptedGithub } from "./bench";

const names = commands.map(({ name }) => name);

const ended = (...args: string[]) => inProcess(args);

/** Asked as processes of their own too. */
const asProcesses = new Set(drawn("processes", names, 12));

test("every command refuses an option that it has not, and its help stands in `fixtures/sessions/help.txt`", async () => {
  const help = await Bun.file(join(fixtures, "sessions/help.txt")).text();
  for (const name of names) {
    expect(help).toContain(`\n$ ${name} --help\n`);
    const words = [...name.split(" "), "--nonsense"];
    const refused = await ended(...words);
    expect([name, refused.code, refused.stderr]).toEqual([
      name,
      2,
      expect.stringContaining(`\`dragoman ${name} --help\``),
    ]);
    if (asProcesses.has(name)) expect(await asProcess(words)).toEqual(refused);
  }
});

test("dragoman without a command prints the version alone, or the help", async () => {
  // The program itself answers the first two, before it loads its commands.
  for (const [args, way] of [
    [["--version"], asProcess],
    [["-v"], asProcess],
    [["nonsense", "--version"], inProcess],
  ] as const)
    expect(await way(args)).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  const whole = await asProcess([]);
  for (const name of names)
    expect([whole.code, whole.stdout]).toEqual([0, expect.stringMatching(new RegExp(`\\b${name.split(" ")[0]}\\b`))]);
  for (const word of ["--help", "-h"]) expect(await ended(word)).toEqual(whole);
});

test("an option whose value is empty is refused, not taken for one that was left out", async () => {
  const valued = commands.flatMap(({ name, argument, options }) =>
    Object.entries(options)
      .filter(([, { value }]) => value !== undefined)
      .map((each) => [...name.split(" "), ...(argument ? ["x"] : []), usageOf(...each).match(/--[\w-]+/)![0]] as const),
  );
  expect(valued.length).toBeGreaterThan(40);
  for (const words of valued)
    for (const value of ["", "  "])
      expect(await ended(...words, value)).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringContaining(`${words.at(-1)} is empty`),
      });
});

test("what a sentence tells a person to run is a command", async () => {
  const root = join(import.meta.dir, "../..");
  const files = [...new Bun.Glob("src/**/*.{ts,tsx,md}").scanSync(root), "README.md"];
  const texts = await Promise.all(files.map(async (file) => [file, await Bun.file(join(root, file)).text()] as const));
  const second = [...new Set(names.flatMap((name) => name.split(" ")[1] ?? []))].join("|");
  const named = new RegExp(`\`dragoman ([a-z]+(?:-[a-z]+)*(?: (?:${second})\\b)?)[^\`\\n]{0,50}\``, "g");
  const told = texts.flatMap(([file, text]) => {
    const spans = text.replace(/^```[\s\S]*?^```/gm, "").replaceAll("\\`", "`");
    return [...spans.matchAll(named)].map(([, name]) => `${file}: ${name}`);
  });
  expect(told.length).toBeGreaterThan(20);
  expect(told.filter((each) => !names.includes(each.split(": ")[1]!))).toEqual([]);
});

test("a long result is told whole, through a pipe that is read late", async () => {
  // Far more than a pipe holds.
  const long = `console.log("begin"); const { print } = await import(${JSON.stringify(join(import.meta.dir, "../../src/cli/terminal.ts"))}); print("x".repeat(400_000)); process.exit(0);`;
  const child = Bun.spawn(
    ["sh", "-c", '"$0" -e "$1" | { read first; echo "$first"; sleep 0.3; wc -c; }', process.execPath, long],
    {
      stdout: "pipe",
    },
  );
  expect((await new Response(child.stdout).text()).trim().split(/\s+/)).toEqual(["begin", "400001"]);
});

test("the waiting line of a sign-in stays one row, however narrow the terminal is", async () => {
  await using github = scriptedGithub();
  const columns = 20;
  await using terminal = atTerminal(["auth"], github.env, github.home, columns);
  await terminal.shows("Signed in as");
  const rows = terminal
    .written()
    .split("\r")
    .filter((text) => text.startsWith("Waiting"));
  expect(rows).not.toEqual([]);
  for (const row of rows) expect(Bun.stripANSI(row).length).toBeLessThan(columns);
});
