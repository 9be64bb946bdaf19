/** Scenario: `dragoman completion`: the shells themselves are asked what they would complete. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { spellingsOf } from "../../src/cli/command";
import { commands, groups } from "../../src/cli/commands";
import { completedShells, completion } from "../../src/cli/completion";
import { inProcess } from "../support/in-process";
import { drawn } from "../support/random";
import { temporaryFolder } from "../support/temporary-folder";

const folder = temporaryFolder(afterAll);
const file = (shell: string) => join(folder, `dragoman.${shell}`);
const spellings = ({ options }: (typeof commands)[number]) =>
  Object.entries(options).flatMap(([name, option]) => spellingsOf(name, option));

/** What each shell prints as candidates for these words, of which the last is being written. */
const drivers: Record<string, (words: string[]) => string[]> = {
  bash: (words) => [
    "bash",
    "--norc",
    "-c",
    `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dragoman; printf "%s\\n" "\${COMPREPLY[@]}"`,
    file("bash"),
    ...words,
  ],
  fish: (words) => ["fish", "--no-config", "-c", `source ${file("fish")}; complete -C '${words.join(" ")}'`],
  // The candidates are handed to `_describe`, which a shell that is no terminal has not.
  zsh: (words) => [
    "zsh",
    "-f",
    "-c",
    `compdef() { }; source "$0"; _describe() { print -rl -- \${(P)4} }; words=("$@"); CURRENT=$#; _dragoman`,
    file("zsh"),
    ...words,
  ],
};

function complete(shell: string, ...words: string[]): string[] {
  const { stdout, exitCode, stderr } = Bun.spawnSync(drivers[shell]!(["dragoman", ...words]), {
    env: { PATH: process.env.PATH },
  });
  if (stderr.length > 0) throw new Error(`${exitCode}: ${stderr}`);
  const candidates = stdout
    .toString()
    .split("\n")
    .map((line) => line.split(/[\t:]/)[0]!);
  return candidates.filter((word) => word !== "" && word.startsWith(words.at(-1)!));
}

beforeAll(async () => {
  for (const shell of completedShells) writeFileSync(file(shell), await completion(shell, groups));
});

describe.each(Object.keys(drivers).filter((shell) => Bun.which(shell)))("%s", (shell) => {
  test("completes every command, and each one's own options", () => {
    const top = new Set(commands.map(({ name }) => name.split(" ")[0]!));
    expect(
      complete(shell, "")
        .filter((word) => !word.startsWith("-"))
        .sort(),
    ).toEqual([...top].sort());
    for (const command of drawn(shell, commands))
      expect(complete(shell, ...command.name.split(" "), "--").sort()).toEqual(
        [...spellings(command).filter((each) => each.startsWith("--")), "--help", "--version"].sort(),
      );
  });

  test("completes the beginning of a word, commands of commands, and the values it knows", () => {
    expect(complete(shell, "sta").sort()).toEqual(["start", "status", "statusline"]);
    expect(
      complete(shell, "auth", "")
        .filter((word) => !word.startsWith("-"))
        .sort(),
    ).toEqual(["add", "ls", "rm", "roads"]);
    expect(complete(shell, "auth", "add", "--oauth-app", "").sort()).toEqual(["opencode", "vscode"]);
    expect(complete(shell, "start", "--demo", "--admin-auth", "")).toEqual(["always"]);
    expect(complete(shell, "connect", "claude-c")).toEqual(["claude-code"]);
    expect(complete(shell, "completion", "z")).toEqual(["zsh"]);
    expect(complete(shell, "start", "--host", "")).toEqual([]);
    expect(complete(shell, "nonsense", "xyz")).toEqual([]);
  });
});

test.if(Bun.which("bash") !== null)("bash takes --option=value apart, as it hands it over", () => {
  expect(complete("bash", "auth", "--oauth-app", "=", "op")).toEqual(["opencode"]);
  const { stdout } = Bun.spawnSync(drivers.bash!(["dragoman", "auth", "--oauth-app", "="]));
  expect(stdout.toString()).toBe("vscode\nopencode\n");
});

test.each(completedShells)(
  "the script for %s names every command and option, and its quotes are even",
  async (shell) => {
    const script = await completion(shell, groups);
    for (const command of commands) {
      expect(script).toContain(`'${command.name}'`);
      for (const option of spellings(command))
        expect(script).toContain(
          shell === "fish" ? `${option.startsWith("--") ? "-l" : "-s"} ${option.replace(/^-+/, "")} ` : option,
        );
    }
    // Quotes within quotes: bash and zsh leave and enter again, fish escapes, PowerShell doubles.
    const inner = shell === "fish" ? /\\'/g : shell === "powershell" ? /''/g : /'\\''/g;
    for (const line of script.split("\n").filter((each) => !each.startsWith("#")))
      expect([line, (line.replace(inner, "").match(/'/g) ?? []).length % 2]).toEqual([line, 0]);
  },
);

test("it is printed whole on stdout", async () => {
  const printed = await inProcess(["completion", "bash"]);
  expect(printed).toEqual({ code: 0, stdout: await Bun.file(file("bash")).text(), stderr: "" });
});
