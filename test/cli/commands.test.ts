/**
 * Scenario: the commands as the command line has them: each tells its version and its help, and none is named that is
 * not there.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { version } from "../../package.json";
import { callOf, usageOf } from "../../src/cli/command";
import { commands } from "../../src/cli/commands";
import { asProcess, inProcess } from "../support/in-process";
import { drawn } from "../support/random";
import { atTerminal } from "../support/terminal";
import { scriptedGithub } from "./bench";

const names = commands.map(({ name }) => name);

const ended = (...args: string[]) => inProcess(args);

/** What a process of its own says of an option that there is not, it says for a few of the commands. */
const asProcesses = new Set(drawn("processes", names, 8));

describe.each(names)("%s", (name) => {
  const words = name.split(" ");

  test("tells the version and the help, and does nothing", async () => {
    for (const option of ["--version", "-v"])
      expect(await ended(...words, option)).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
    for (const option of ["--help", "-h"]) {
      const { code, stdout, stderr } = await ended(...words, option);
      expect([code, stderr]).toEqual([0, ""]);
      const command = commands.find((each) => each.name === name)!;
      expect(stdout).toContain(`$ dragoman ${callOf(command)}`);
      for (const [each, option] of Object.entries(command.options)) expect(stdout).toContain(usageOf(each, option));
    }
  });

  test("refuses an option that it has not, with the command that tells which it has", async () => {
    const { code, stdout, stderr } = await ended(...words, "--nonsense");
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining(`\`dragoman ${name} --help\``)]);
    if (asProcesses.has(name)) expect(await asProcess([...words, "--nonsense"])).toEqual({ code, stdout, stderr });
  });
});

test("dragoman without a command prints the version alone, or the help", async () => {
  // The program itself answers the first two, before it loads its commands.
  for (const args of [["--version"], ["-v"], ["nonsense", "--version"]])
    expect(await asProcess(args)).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  for (const args of [[], ["--help"], ["-h"]]) {
    const { code, stdout } = await asProcess(args);
    for (const name of names)
      expect([code, stdout]).toEqual([0, expect.stringMatching(new RegExp(`\\b${name.split(" ")[0]}\\b`))]);
  }
  expect(await ended("nonsense")).toMatchObject({ code: 2, stdout: "" });
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
  for (const words of [
    ["start", "--trust-proxy", ""],
    ["start", "--trust-proxy", ","],
  ])
    expect(await ended(...words)).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining(words.at(-2)!),
    });
});

test("the first word of several commands is answered with them", async () => {
  const { code, stderr } = await ended("key", "list");
  expect([code, stderr]).toEqual([2, expect.stringContaining("`dragoman key add`, `dragoman key ls`")]);
  expect((await ended("nonsense")).stderr).not.toContain("There are");
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
