/** Scenario: `dragoman usage`: what is left, for a person and for a script. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { atTerminal } from "../support/terminal";
import { until } from "../support/until";
import { type Github, scriptedGithub } from "./bench";

const quotaCalls = ({ demo }: Github) => demo.journal.filter(({ path }) => path === "/copilot_internal/user").length;

test("usage is asked of the running server, with its client key, whatever port it has, and of GitHub once it is gone", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  writeFileSync(join(github.data, "config.json"), JSON.stringify({ auth: { apiKeys: ["k-0123456789"] } }));
  const server = github.serve();
  await fetch(`${server.url}/usage`, { headers: { "x-api-key": "k-0123456789" } });
  expect(quotaCalls(github)).toBe(1);
  const { stdout } = await inProcess(["usage", "--json"], github.env);
  expect(JSON.parse(stdout)).toMatchObject({ accounts: [{ id: "octo-demo", remaining: 217.34, state: "ready" }] });
  expect(quotaCalls(github)).toBe(1);
  server[Symbol.dispose]();
  // One that was killed leaves its note; its process may be another's by now.
  const gone = Bun.spawn(["true"]);
  await gone.exited;
  for (const [at, pid] of [gone.pid, process.pid].entries()) {
    writeFileSync(join(github.data, "running.json"), JSON.stringify({ url: server.url, pid }));
    expect((await inProcess(["usage"], github.env)).stdout).toContain("217.34 of 300");
    expect(quotaCalls(github)).toBe(2 + at);
  }
});

test("what an upstream says reaches no terminal as a command to it", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  const escapes = "\u001b]0;owned\u0007\u001b[2J\u009b31m\u001b[1m\r\nforged: row\u202e";
  const told: [string, () => Response][] = [
    ["/copilot_internal/v2/token", () => Response.json({ message: `Not you. ${escapes}` }, { status: 403 })],
    ["/copilot_internal/user", () => Response.json({ copilot_plan: `plan${escapes}`, login: "octo-demo" })],
  ];
  for (const [path, answer] of told) github.demo.intercept(path, answer, 100);
  // Our own waiting line goes back and clears what is behind it.
  const commandsIn = (text: string) => text.replaceAll("\u001b[K", "").match(/[^\P{Cc}\r\n\t]|\u202e|[\r\n]forged/gu);
  for (const args of [["usage"], ["usage", "--json"], ["auth", "ls", "-q"], ["doctor"], ["doctor", "--json"]]) {
    const { stdout, stderr } = await inProcess(args, github.env);
    expect([args, stdout + stderr]).toEqual([args, expect.stringContaining("owned")]);
    expect([args, commandsIn(stdout + stderr)]).toEqual([args, null]);
  }
  await using terminal = atTerminal(["auth"], { ...github.env, NO_COLOR: "1" }, github.home);
  await terminal.shows("owned");
  await terminal.exited;
  expect(commandsIn(terminal.written())).toBe(null);
});

test("usage as one line again and again", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using watching = run(["usage", "--format", "{remaining}", "--watch", "1"], { env: github.env });
  await until(() => watching.stdout().split("\n").length >= 3, "it has printed two lines");
  watching.process.kill("SIGINT");
  expect(await watching.exited).toBe(0);
  expect(watching.stdout()).toStartWith("217\n217\n");
});

// Linux has a file that is always full.
const results = [["key", "add", "laptop"], ["--help"]].map((words) => [words]);
test.skipIf(process.platform !== "linux").each(results)(
  "what %j cannot write anywhere is no success",
  async (words) => {
    const script = '"$@" > /dev/full';
    await using command = run(words, { within: ["sh", "-c", script, "sh"] });
    expect(await command.exited).toBe(1);
    expect(command.stderr()).toContain("The output could not be written: Error: ENOSPC");
  },
);
