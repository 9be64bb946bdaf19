/** Scenario: how soon a process ends, notices and answers, as an editor, a terminal or a script sees it. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scriptedGithub } from "../../cli/bench";
import { askChat, run } from "../../support/command";
import { inProcess } from "../../support/in-process";
import { leastOf, took } from "../../support/least";
import { until } from "../../support/until";

const demo = ["start", "--demo", "--json", "--port", "0"];
const ask = (url: string, content: string, model?: string) => askChat(url, content, { model, stream: true });

describe("a process ends", () => {
  test.each<[string, number, () => Promise<number>]>([
    [
      "after a signal while it is idle",
      2_000,
      async () => {
        await using command = run(demo);
        await command.ready();
        command.process.kill("SIGTERM");
        return await took(() => command.exited);
      },
    ],
    [
      "when the stdin that it lives by is closed",
      2_000,
      async () => {
        await using command = run([...demo, "--stdin-lifetime"]);
        await command.ready();
        command.process.stdin.end();
        return await took(() => command.exited);
      },
    ],
    [
      "when the parent that it lives by is killed, in the middle of a stream",
      2_000,
      async () => {
        await using parent = Bun.spawn(["sleep", "600"]);
        await using command = run([...demo, "--parent-pid", String(parent.pid)]);
        const { url } = await command.ready();
        const stream = await ask(url, "[demo: long 2000] Hello");
        const text = stream.text().catch(() => "cut");
        parent.kill("SIGKILL");
        const ms = await took(() => command.exited);
        await text;
        return ms;
      },
    ],
    [
      "after a second signal, with 50 streams that are silent",
      5_000,
      async () => {
        await using command = run(demo);
        const { url } = await command.ready();
        const streams = await Promise.all(Array.from({ length: 50 }, () => ask(url, "[demo: silence 20] Hello")));
        const texts = streams.map((stream) => stream.text().catch(() => "cut"));
        command.process.kill("SIGTERM");
        await until(() => command.stderr().includes("a second signal"), "the first signal is answered");
        command.process.kill("SIGTERM");
        const ms = await took(() => command.exited);
        await Promise.all(texts);
        return ms;
      },
    ],
  ])("%s, within %d ms", async (_when, most, measure) => {
    expect(await leastOf(most, measure)).toBeLessThan(most);
  });

  test.each<[string, (file: string) => void]>([
    ["a pipe", (file) => void Bun.spawnSync(["mkfifo", file])],
    ["a folder", (file) => mkdirSync(file)],
    ["100 MB", (file) => writeFileSync(file, new Uint8Array(100 * 1024 * 1024).fill(32))],
    ["a circle of links", (file) => symlinkSync(file, file)],
  ])("whose config is %s, within 4 s", async (_what, make) => {
    const measure = async () => {
      await using first = run(["--version"]);
      await first.exited;
      mkdirSync(join(first.home, "data"), { recursive: true, mode: 0o700 });
      make(join(first.home, "data/config.json"));
      return await took(async () => {
        await using command = run(["start", "--json", "--port", "0"], {
          env: { DRAGOMAN_HOME: join(first.home, "data") },
        });
        expect(await command.exited).toBe(1);
      });
    };
    expect(await leastOf(4_000, measure)).toBeLessThan(4_000);
  });
});

describe("a process that lives by its parent goes on while that lives", () => {
  test("for longer than it takes to look", async () => {
    await using command = run([...demo, "--parent-pid", String(process.pid)]);
    await command.ready();
    await Bun.sleep(1_500);
    expect(command.process.exitCode).toBeNull();
  });

  test.if(process.platform === "linux")("though no file can be opened to see it", async () => {
    await using command = run([...demo, "--parent-pid", String(process.pid)], {
      within: ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"],
    });
    const { url, port } = await command.ready();
    // What a start loads beside the first requests needs files too.
    await (await fetch(`${url}/v1/models`)).text();
    await Bun.sleep(300);
    // The system hands a connection on when something has come over it.
    const socket = { data() {}, open: (each: Bun.Socket) => void each.write("GET /health HTTP/1.1\r\n") };
    const sockets = await Promise.all(
      Array.from({ length: 100 }, () => Bun.connect({ hostname: "127.0.0.1", port, socket })),
    );
    await Bun.sleep(1_500);
    expect(command.process.exitCode).toBeNull();
    expect(command.stderr()).not.toContain("given by --parent-pid");
    for (const each of sockets) each.end();
  });
});

test("who signs in beside a running server can serve within two seconds, and who is removed is gone within two", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using server = run(["start", "--json", "--port", "0"], { env: github.env });
  const { url } = await server.ready();
  const usage = async () =>
    ((await (await fetch(`${url}/usage`)).json()) as { accounts: { id: string }[] }).accounts.map(({ id }) => id);
  const settles = (...wanted: string[]) =>
    took(() => until(async () => (await usage()).join() === wanted.join(), `${wanted.join(" and ")} can serve`));
  github.signIn("octo-demo", "work-demo");
  expect(await settles("octo-demo", "work-demo")).toBeLessThan(2_000);
  expect((await inProcess(["auth", "rm", "work-demo", "--force"], github.env)).code).toBe(0);
  expect(await settles("octo-demo")).toBeLessThan(2_000);
});

test("a process that was stopped until its token had ended serves all who called meanwhile, with one new token", async () => {
  await using github = scriptedGithub();
  // The shortest life of a token that is believed is 30 s.
  Object.assign(github.demo.accounts[0]!, { tokenLifetime: 33, refreshIn: 30 });
  github.signIn("octo-demo");
  await using server = run(["start", "--json", "--port", "0"], { env: github.env });
  const { url } = await server.ready();
  await (await ask(url, "Hello", "gpt-5-mini")).text();
  server.process.kill("SIGSTOP");
  await Bun.sleep(34_000);
  const before = github.demo.journal.length;
  const waiting = Array.from({ length: 20 }, () => ask(url, "Hello", "gpt-5-mini"));
  await Bun.sleep(200);
  server.process.kill("SIGCONT");
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(new Array(20).fill(200));
  const since = github.demo.journal.slice(before);
  expect(since.filter(({ status }) => status !== 200)).toEqual([]);
  expect(since.filter(({ path }) => path === "/copilot_internal/v2/token")).toHaveLength(1);
}, 90_000);
