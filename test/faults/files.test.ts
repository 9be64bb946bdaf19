/** Scenario: a process that has no files left cannot connect anywhere. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { openFilesOf } from "../../src/books/observe/open-files";
import { run } from "../support/command";
import { until } from "../support/until";

/** What a script of `support/` says last in a process that may have so many files open. */
async function saidWith(files: number, script: string) {
  const limited = ["sh", "-c", `ulimit -n ${files}; exec "$@"`, "sh", process.execPath];
  const path = join(import.meta.dir, "../support", script);
  await using child = Bun.spawn([...limited, path], { stdout: "pipe", stderr: "pipe", timeout: 50_000 });
  const [text, faults] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect([faults, text]).toEqual([expect.any(String), expect.stringContaining('"starved"')]);
  return JSON.parse(text.trim().split("\n").at(-1)!);
}

test.if(process.platform === "linux")(
  "clients of a process that is out of files are told so, with a time to wait, and no account is blamed",
  async () => {
    const { starved, states, after } = await saidWith(128, "out-of-files.ts");
    expect(starved).toEqual(
      Array(6).fill(
        expect.objectContaining({
          status: 503,
          retryAfter: "2",
          code: "out_of_files",
          message: expect.stringContaining("as many files and connections open as its limit allows"),
        }),
      ),
    );
    // Five failures in a row of the account's own would put it to rest.
    expect(states).toEqual(["ready", "ready"]);
    expect(after.status).toBe(200);
  },
  60_000,
);

test.if(process.platform === "linux")(
  "a process that is out of files lives, and fails only what needs a new thread until it has files again",
  async () => {
    const { starved, after } = await saidWith(64, "threads-out-of-files.ts");
    for (const name of ["history", "tokens", "search", "notices"])
      expect([name, starved[name]]).not.toEqual([name, "done"]);
    expect(after).toEqual({ history: "done", tokens: "done", search: "done", notices: "done" });
  },
  60_000,
);

test.if(process.platform === "linux")(
  "doctor warns of a running server that has nearly all of its files and connections open, before it has all",
  async () => {
    await using server = run(["start", "--demo", "--json", "--port", "0"], {
      within: ["sh", "-c", 'ulimit -n 100; exec "$@"', "sh"],
    });
    const { url, port, pid } = await server.ready();
    const examine = async () => {
      const env = { DRAGOMAN_HOME: join(server.home, "data") };
      await using doctor = run(["doctor", "--json", "--port", String(port)], { env });
      await doctor.exited;
      const { checks } = JSON.parse(doctor.stdout()) as { checks: { name: string; state: string; message: string }[] };
      return checks.find(({ name }) => name === "server")!;
    };
    expect(await examine()).toMatchObject({ state: "ok" });
    const socket = { data() {}, open: (each: Bun.Socket) => void each.write("GET /health HTTP/1.1\r\n") };
    const free = 100 - openFilesOf(pid)!.open;
    const sockets = await Promise.all(
      Array.from({ length: free - 10 }, () => Bun.connect({ hostname: "127.0.0.1", port, socket })),
    );
    await until(() => openFilesOf(pid)!.open > 85, "nearly all files are open");
    const { state, message } = await examine();
    expect([state, message]).toEqual([
      "warn",
      expect.stringMatching(/and has \d\d of 100 files and connections open\.$/),
    ]);
    for (const each of sockets) each.end();
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/^process_max_fds 100$/m);
    expect(metrics).toMatch(/^process_open_fds \d+$/m);
  },
  60_000,
);
