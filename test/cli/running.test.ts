/** Scenario: a running server while people sign in and out beside it, and while the machine sleeps. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findNeighbour, writeInstanceFile } from "../../src/cli/start/instance-file";
import type { Demo } from "../../src/demo/demo";
import { run } from "../support/command";
import { inProcess } from "../support/in-process";
import { startProxy } from "../support/proxy";
import { testWith } from "../support/sandbox";
import { temporaryFolder } from "../support/temporary-folder";
import { atTerminal } from "../support/terminal";
import { until } from "../support/until";
import { ask, scriptedGithub } from "./bench";

const hour = 3_600_000;
const start = ["start", "--json", "--port", "0"];
/** All who called during a sleep are served, and the upstream refuses nothing. @returns How many tokens were fetched for it. */
async function exchangesAfter(demo: Demo, before: number, waiting: Promise<Response>[]): Promise<number> {
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array(waiting.length).fill(200));
  const since = demo.journal.slice(before);
  expect(since.filter(({ status }) => status !== 200)).toEqual([]);
  return since.filter(({ path }) => path === "/copilot_internal/v2/token").length;
}

test.each([
  ["goes on, as in a stopped process", 8 * hour],
  ["stands still, as in a machine that is suspended", 0],
])(
  "after eight hours of sleep a new token comes before the first call, once and without a 401; the steady clock %s",
  async (_, steadyMs) => {
    let [wall, steady] = [Date.now(), 0];
    await using proxy = await startProxy({
      demo: { now: () => wall },
      clock: { now: () => wall, monotonic: () => steady },
    });
    expect((await ask(proxy.url)).status).toBe(200);
    wall += hour / 12;
    steady += hour / 12;
    expect((await ask(proxy.url)).status).toBe(200);
    wall += 8 * hour;
    steady += steadyMs;
    const before = proxy.demo.journal.length;
    const waiting = Array.from({ length: 20 }, () => ask(proxy.url));
    expect(await exchangesAfter(proxy.demo, before, waiting)).toBe(1);
  },
);

test("a process that was stopped and is woken serves all who called meanwhile, with a good token", async () => {
  await using github = scriptedGithub();
  Object.assign(github.demo.accounts[0]!, { tokenLifetime: 33, refreshIn: 30 });
  github.signIn("octo-demo");
  await using server = run(start, { env: github.env });
  const { url } = await server.ready();
  expect((await ask(url)).status).toBe(200);
  server.process.kill("SIGSTOP");
  const before = github.demo.journal.length;
  const waiting = Array.from({ length: 20 }, () => ask(url));
  server.process.kill("SIGCONT");
  expect(await exchangesAfter(github.demo, before, waiting)).toBe(0);
});

test("a running server takes up who signs in and lets go who is removed; what is under way ends", async () => {
  await using github = scriptedGithub({ pace: 10 });
  github.signIn("octo-demo");
  using server = github.serve();
  const { url } = server;
  const usage = async () =>
    ((await (await fetch(`${url}/usage`)).json()) as { accounts: { id: string }[] }).accounts.map(({ id }) => id);
  const settles = (wanted: string[]) =>
    until(async () => (await usage()).join() === wanted.join(), `${wanted.join(" and ")} can serve`);
  expect(await usage()).toEqual(["octo-demo"]);

  github.signIn("octo-demo", "work-demo");
  await settles(["octo-demo", "work-demo"]);
  await until(() => server.lines.join("").includes("work-demo is signed in and ready."), "the sign-in is in the log");

  const stream = await ask(url, "[demo: long 500] Hello", { model: "claude-sonnet-4.6", stream: true });
  expect((await inProcess(["auth", "rm", "octo-demo", "--force"], github.env)).code).toBe(0);
  await settles(["work-demo"]);
  expect(await stream.text()).toEndWith("data: [DONE]\n\n");
  expect(github.demo.journal.findLast(({ path }) => path === "/chat/completions")!.account).toBe("octo-demo");
});

const noteIn = (home: string) => join(home, "running.json");
const leave = (home: string, note: object) => {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  writeFileSync(noteIn(home), JSON.stringify(note), { mode: 0o600 });
};

test("the note of where it listens is its owner's alone, and nobody else's with our own process id, with that of a later process, or with the address where we listen", () => {
  const home = temporaryFolder();
  const here = "http://127.0.0.1:4141";
  const there = "http://127.0.0.1:4242";
  for (const [note, neighbour] of [
    [{ url: here, pid: process.pid }, false],
    [{ url: there, pid: process.pid }, false],
    [{ url: here, pid: process.ppid }, false],
    [{ url: there, pid: process.ppid }, true],
    // After a power cut, another program has the process id.
    [{ url: there, pid: process.ppid, born: "1" }, process.platform !== "linux"],
  ] as const) {
    leave(home, note);
    expect(findNeighbour(home, here)).toEqual(neighbour ? { born: "", ...note } : undefined);
    const withdraw = writeInstanceFile(home, { url: here });
    expect(JSON.parse(readFileSync(noteIn(home), "utf8"))).toMatchObject({ url: here, pid: process.pid });
    expect(statSync(noteIn(home)).mode & 0o777).toBe(0o600);
    withdraw();
    expect(existsSync(noteIn(home))).toBe(neighbour);
  }
});

testWith(
  "processes",
  "the note of process 1 in a container that was killed is not taken for another server's, and goes at a clean stop",
  async () => {
    const home = temporaryFolder();
    const note = noteIn(home);
    const first = [...start, "--stdin-lifetime"];
    const begin = () =>
      run(first, { env: { DRAGOMAN_HOME: home }, within: ["unshare", "-Urpf", "--kill-child", "--mount-proc"] });
    {
      await using killed = begin();
      expect((await killed.ready()).pid).toBe(1);
    }
    expect(JSON.parse(readFileSync(note, "utf8")).pid).toBe(1);
    await using next = begin();
    expect((await next.ready()).pid).toBe(1);
    next.process.stdin.end();
    expect(await next.exited).toBe(0);
    expect(next.stderr()).not.toContain("is also used by");
    expect(existsSync(note)).toBe(false);
  },
);

describe.concurrent("a start without an account, at a terminal", () => {
  test("listens, offers to sign in beside, and serves when somebody has", async () => {
    await using github = scriptedGithub();
    await using terminal = atTerminal(["start", "--port", "0"], github.env, github.home);
    await terminal.shows("No account is signed in. Sign in to GitHub now? [Y/n]");
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(terminal.screen())![0];
    expect((await ask(url)).status).toBe(424);
    terminal.type("\n");
    await terminal.shows("enter the code DEMO-0001");
    expect((await fetch(`${url}/health`)).status).toBe(200);
    await terminal.shows("dragoman can serve requests now.");
    await terminal.shows("octo-demo is signed in");
    expect((await ask(url)).status).toBe(200);
    terminal.type("\x03");
    expect(await terminal.exited).toBe(0);
  });

  test("goes on without when told no, and ends at Ctrl-C while the question stands", async () => {
    await using github = scriptedGithub();
    await using refusing = atTerminal(["start", "--port", "0"], github.env, github.home);
    await refusing.shows("now? [Y/n]");
    refusing.type("n\n");
    await refusing.shows(/http:\/\/127\.0\.0\.1:\d+/);
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(refusing.screen())![0];
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect(github.demo.journal).toEqual([]);
    refusing.type("\x03");
    expect(await refusing.exited).toBe(0);

    await using leaving = atTerminal(["start", "--port", "0"], github.env, github.home);
    await leaving.shows("now? [Y/n]");
    leaving.type("\x03");
    expect(await leaving.exited).toBe(0);
  });

  test("is not asked when an editor or a script has started it", async () => {
    await using github = scriptedGithub();
    await using terminal = atTerminal(["start", "--json", "--port", "0"], github.env, github.home);
    await terminal.shows('"event":"ready"');
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(terminal.screen())![0];
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect(terminal.screen()).not.toContain("Sign in to GitHub now?");
    terminal.type("\x03");
    await terminal.exited;
  });
});
