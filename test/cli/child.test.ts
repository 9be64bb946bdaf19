/** Scenario: dragoman as the child of an editor: it stops when that is gone, however it went. */
import { afterAll, describe, expect, test } from "bun:test";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { program, run } from "../support/command";
import { inProcess } from "../support/in-process";
import { drawn } from "../support/random";
import { until } from "../support/until";
import { ask, scriptedGithub } from "./bench";

const start = ["start", "--json", "--port", "0"];
const github = scriptedGithub({ pace: 10 });
github.signIn("octo-demo");
const { env, home } = github;
afterAll(() => github[Symbol.asyncDispose]());

const stream = (url: string, content: string) => ask(url, content, { stream: true });

/** An ended process is there until its new parent, the system, has taken note of it. */
function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== "linux" || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** A program that starts dragoman, holds its streams, tells its ready line and would live on. */
function editor(options: string, wrapped: boolean) {
  const command = JSON.stringify([...program, ...start]);
  const script = `
    const { spawn } = require("node:child_process");
    const command = [...${command}, ...${options}];
    const child = ${wrapped}
      ? spawn("sh", ["-c", '"$@"; true', "sh", ...command], { stdio: ["pipe", "pipe", "ignore"] })
      : spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "ignore"] });
    child.stdout.on("data", (bytes) => process.stdout.write(bytes));
    setInterval(() => {}, 1000);`;
  return Bun.spawn(["node", "-e", script], {
    cwd: home,
    env: { PATH: process.env.PATH ?? "", ...env },
    stdout: "pipe",
    stderr: "inherit",
  });
}

async function readyLine(stdout: ReadableStream<Uint8Array>): Promise<{ url: string; pid: number }> {
  let text = "";
  for await (const chunk of stdout) {
    text += new TextDecoder().decode(chunk);
    if (text.includes("\n")) break;
  }
  return JSON.parse(text);
}

const ties = [
  ["--stdin-lifetime", '["--stdin-lifetime"]'],
  ["--parent-pid", '["--parent-pid", String(process.pid)]'],
  ["both", '["--stdin-lifetime", "--parent-pid", String(process.pid)]'],
] as const;

describe.each(ties)("killed without a word, the editor takes dragoman with it: %s", (_, options) => {
  test.each(
    drawn(options, [
      ["idle", undefined],
      ["with a stream that flows", "[demo: long 2000] Hello"],
      ["with a stream that is silent", "[demo: silence 60] Hello"],
    ]),
  )("%s", async (_, content) => {
    await using parent = editor(options, false);
    const { url, pid } = await readyLine(parent.stdout);
    const answer = content === undefined ? undefined : await stream(url, content);
    const text = answer?.text().catch(() => "cut");
    expect(isThere(pid)).toBe(true);
    parent.kill("SIGKILL");
    await until(() => !isThere(pid), "the child has ended");
    if (text !== undefined) expect(await text).toMatch(/shutting down|cut/);
  });
});

test("the editor is not its parent, but the parent's", async () => {
  await using parent = editor('["--parent-pid", String(process.pid)]', true);
  const { pid } = await readyLine(parent.stdout);
  parent.kill("SIGKILL");
  await until(() => !isThere(pid), "the child has ended");
});

test("a stdin that ends lets what is quick end well, says why, and is exit code 0", async () => {
  // The id in the folder is another program's by now.
  const note = JSON.stringify({ url: "http://127.0.0.1:1", pid: process.pid });
  writeFileSync(join(github.data, "running.json"), note, { mode: 0o600 });
  await using command = github.start(["--stdin-lifetime"]);
  const { url } = await command.ready();
  const text = (await stream(url, "[demo: long 5] Hello")).text();
  command.process.stdin.end();
  expect(await command.exited).toBe(0);
  expect(await text).toEndWith("data: [DONE]\n\n");
  expect(command.stderr()).toContain("Stdin was closed");
  expect(command.stderr()).not.toContain("is also used by");
  expect(command.stdout().trim().split("\n")).toHaveLength(1);
});

test("a stdin that ends is nothing without the option, nor is what comes over it", async () => {
  await using held = github.start(["--stdin-lifetime"]);
  await using free = github.start();
  const ready = await Promise.all([held.ready(), free.ready()]);
  for (let turn = 0; turn < 20; turn++) held.process.stdin.write("words that nobody reads\n".repeat(1000));
  await held.process.stdin.flush();
  free.process.stdin.end();
  for (const { url } of ready) expect(await (await stream(url, "Hello")).text()).toEndWith("data: [DONE]\n\n");
  expect([held.process.exitCode, free.process.exitCode]).toEqual([null, null]);
});

test("a stdin that ends before the server was ready ends it as well", async () => {
  await using command = run([...start, "--stdin-lifetime"]);
  command.process.stdin.end();
  expect(await command.exited).toBe(0);
  expect(command.stderr()).toContain("Stdin was closed");
});

test.if(process.platform !== "win32").each(["/dev/null", "a file", "closed"])(
  "--stdin-lifetime is refused where nobody can hold stdin: %s",
  async (kind) => {
    const file = kind === "a file" ? join(home, "words") : "/dev/null";
    if (kind === "a file") writeFileSync(file, "words\n");
    const input = openSync(file, "r");
    const command = [...program, ...start, "--stdin-lifetime"];
    const child = Bun.spawn(kind === "closed" ? ["sh", "-c", '"$@" <&-', "sh", ...command] : command, {
      env: { PATH: process.env.PATH ?? "", HOME: home },
      stdin: input,
      stdout: "pipe",
      stderr: "pipe",
    });
    expect(await child.exited).toBe(2);
    closeSync(input);
    expect(await child.stderr.text()).toMatch(/^dragoman: --stdin-lifetime requires a stdin that stays open.*\n$/);
    expect(JSON.parse(await child.stdout.text())).toMatchObject({ event: "failed", code: "usage" });
  },
);

const serve = [...start, "--github-token", "-"];

test.each([
  ["its first line, with stdin held on", ["--stdin-lifetime"], true],
  ["its first line, when nobody ends it", [], true],
  ["all there is, without a line break", [], false],
])("a token on stdin is %s", async (_, more, held) => {
  await using github = scriptedGithub();
  const token = github.demo.accounts.find(({ login }) => login === "octo-demo")!.githubToken;
  await using command = run([...serve, ...more], { env: github.env });
  if (held) command.process.stdin.write(`${token}\r\nnot a token\n`);
  else command.process.stdin.write(token);
  await command.process.stdin.flush();
  if (!held) command.process.stdin.end();
  const { url } = await command.ready();
  expect(await (await stream(url, "Hello")).text()).toEndWith("data: [DONE]\n\n");
  expect(command.stderr()).not.toContain(token);
  if (!more.includes("--stdin-lifetime")) return;
  command.process.stdin.end();
  expect(await command.exited).toBe(0);
});

test("a token on stdin that does not come is wrong usage; a signal while it is awaited ends the wait", async () => {
  await using empty = run(serve);
  empty.process.stdin.end();
  expect(await empty.exited).toBe(2);
  await using waiting = run(serve);
  await Bun.sleep(150);
  waiting.process.kill("SIGTERM");
  await waiting.exited;
  expect(waiting.process.signalCode).toBe("SIGTERM");
});

test.if(process.platform !== "win32")(
  "dragoman refuses its own id as --parent-pid: `exec` has taken the shell's place",
  async () => {
    const child = Bun.spawn(["sh", "-c", 'exec "$@" --parent-pid $$', "sh", ...program, ...start], {
      env: { PATH: process.env.PATH ?? "", HOME: home },
      stderr: "pipe",
    });
    expect(await child.exited).toBe(2);
    expect(await child.stderr.text()).toContain("own process ID");
  },
);

test.if(process.platform === "linux")(
  "dragoman takes a --parent-pid that has ended, but whose parent never asks, for gone",
  async () => {
    // The shell sleeps and leaves its own ended child unasked.
    const shell = Bun.spawn(["sh", "-c", "sleep 0.5 & echo $!; exec sleep 20"], { stdout: "pipe" });
    const first = await shell.stdout.getReader().read();
    const pid = Number(new TextDecoder().decode(first.value));
    await until(() => /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8")), "it has ended");
    const { code, stdout, stderr } = await inProcess([...start, "--parent-pid", String(pid)]);
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { event: "failed", code: "parent_not_running" }]);
    expect(stderr).toContain(`Process ${pid}, given by --parent-pid, is not running`);
    shell.kill();
    await shell.exited;
  },
);

test("a port that is taken by a dragoman of the same data folder is named by its process, with --json too", async () => {
  await using first = run(start);
  const { port, pid } = await first.ready();
  const words = ["start", "--json", "--port", String(port)];
  const second = await inProcess(words, { DRAGOMAN_HOME: join(first.home, "data") });
  expect([second.code, JSON.parse(second.stdout)]).toMatchObject([1, { event: "failed", code: "port_in_use" }]);
  expect(second.stderr).toContain(`Port ${port} is in use by another dragoman server (process ${pid}).`);
});

test.if(process.platform === "linux")(
  "a port that is taken by another than the one a killed dragoman has left behind is told so",
  async () => {
    using holder = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const other = Bun.spawn(["sleep", "20"]);
    const folder = join(home, "stale");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(
      join(folder, "running.json"),
      JSON.stringify({ url: `http://127.0.0.1:${holder.port}`, pid: other.pid }),
    );
    const words = ["start", "--port", String(holder.port)];
    const { code, stderr } = await inProcess(words, { DRAGOMAN_HOME: folder });
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(new RegExp(`is in use by .+ \\(process ${process.pid}\\)`)),
    ]);
    other.kill();
  },
);

test("a data folder that is taken: both serve, the second says so, and commands find who is left", async () => {
  await using first = run(start);
  const { url, pid } = await first.ready();
  const data = join(first.home, "data");
  const running = () => Bun.file(join(data, "running.json")).json();
  const ofFirst = await running();
  expect(ofFirst).toMatchObject({ url, pid });
  await using second = run(start, { env: { DRAGOMAN_HOME: data } });
  await second.ready();
  await until(
    () => second.stderr().includes(`by the dragoman server at ${url} (process ${pid})`),
    "the second names the first",
  );
  expect((await running()).pid).toBe(second.process.pid);
  second.process.kill("SIGTERM");
  expect(await second.exited).toBe(0);
  expect(await running()).toEqual(ofFirst);
});

test("nobody reads its lines from the start: it serves all the same", async () => {
  const data = join(home, "unread");
  await using child = Bun.spawn(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", ...program, ...start], {
    env: { PATH: process.env.PATH ?? "", HOME: home, DRAGOMAN_HOME: data },
  });
  const pipes = run(start, { env: { DRAGOMAN_HOME: `${data}-too` } });
  await using _ = pipes;
  await pipes.process.stdout.cancel().catch(() => {});
  await pipes.process.stderr.cancel().catch(() => {});
  for (const folder of [data, `${data}-too`]) {
    const note = join(folder, "running.json");
    await until(() => existsSync(note), "it listens");
    const { url } = JSON.parse(readFileSync(note, "utf8"));
    expect((await fetch(`${url}/health`)).status).toBe(200);
  }
  child.kill("SIGKILL");
});
