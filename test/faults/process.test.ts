/** The process and its load: many at once, killed, stopped, starved of files. */

import { Database } from "bun:sqlite";
import { describe, expect, spyOn, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { failureCount } from "../../src/cli/start";
import { createLogger } from "../../src/logger";
import { run } from "../support/command";
import { startProxy } from "../support/proxy";

const model = "gpt-5-mini";
const words = (content: string) => [{ role: "user", content }];
const ask = (content = "Hello", stream = true) => JSON.stringify({ model, stream, messages: words(content) });
const post = (url: string, body: string, signal?: AbortSignal) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    body,
    signal,
    headers: { "content-type": "application/json" },
  });
const demo = ["start", "--demo", "--json", "--port", "0"];

test("P03, P04: killed under load and started again: sound, quick, and no finished row is lost", async () => {
  let home = "";
  let known = 0;
  await using first = run(demo);
  home = join(first.home, "data");
  for (let round = 0; round < 3; round++) {
    const startedAt = performance.now();
    const command = round === 0 ? first : run(demo, { env: { DRAGOMAN_HOME: home } });
    try {
      const { url } = await command.ready();
      if (round > 0) expect(performance.now() - startedAt).toBeLessThan(5000);
      let served = 0;
      const senders = Array.from({ length: 20 }, async () => {
        for (;;) {
          try {
            const response = await post(url, ask("Hello", false));
            await response.arrayBuffer();
            served++;
          } catch {
            return;
          }
        }
      });
      await Bun.sleep(600);
      // What was finished a moment ago is on disk.
      const finished = served;
      await Bun.sleep(150);
      command.process.kill("SIGKILL");
      await Promise.all(senders);
      await command.process.exited;
      const database = new Database(join(home, "demo", "admin.sqlite"));
      const { rows } = database.query<{ rows: number }, []>("SELECT count(*) AS rows FROM requests").get()!;
      expect(database.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
      database.close();
      expect(rows - known).toBeGreaterThanOrEqual(finished);
      known = rows;
    } finally {
      if (round > 0) await command[Symbol.asyncDispose]();
    }
  }
}, 30_000);

describe("what nobody foresaw", () => {
  test("P07: in a request is 500 in words, redacted, and the next one is served", async () => {
    await using proxy = await startProxy();
    const models = spyOn(proxy.app.catalogue, "models").mockImplementationOnce(() => {
      throw Object.assign(new TypeError("canary of the inside"), { request: "canary" });
    });
    const response = await post(proxy.url, ask());
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("canary");
    models.mockRestore();
    expect((await post(proxy.url, ask())).status).toBe(200);
  });

  test("P07: outside of one is survived ten times a minute, and then the process ends to be started anew", () => {
    const lines: string[] = [];
    let ended = 0;
    const failed = failureCount(
      {
        logger: createLogger(
          () => "info",
          (line) => void lines.push(line),
        ),
        close: () => {},
      },
      () => void ended++,
    );
    for (let turn = 0; turn < 10; turn++) failed(new Error("no"));
    expect(ended).toBe(0);
    failed(new Error("no"));
    expect(ended).toBe(1);
    expect(lines.at(-1)).toContain("started anew");
  });
});

test("P09: 300 calls are with the upstream at once", async () => {
  await using command = run(demo);
  const { port } = await command.ready();
  const body = ask("[demo: slow-headers 3] Hello");
  // Not fetch: its own limit would hold back the callers.
  const call = () =>
    new Promise<string>((resolve, reject) => {
      const sent = request(
        { host: "127.0.0.1", port, path: "/v1/chat/completions", method: "POST", agent: false },
        (answer) => {
          let text = "";
          answer.on("data", (piece) => (text += piece));
          answer.on("end", () => resolve(text));
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
  await call();
  const startedAt = performance.now();
  const texts = await Promise.all(Array.from({ length: 300 }, call));
  // In two batches it would be six seconds.
  expect(performance.now() - startedAt).toBeLessThan(5900);
  expect(texts.every((text) => text.endsWith("data: [DONE]\n\n"))).toBe(true);
}, 20_000);

test("P10: beyond 3,000 at once the answer is 503 with a second to wait, and it recovers", async () => {
  await using proxy = await startProxy();
  for (let each = 0; each < 3000; each++)
    proxy.app.live.begun(`busy-${each}`, { tell: () => ({}) as never, stop: () => {} });
  const rows = proxy.rows().length;
  const startedAt = performance.now();
  const refused = await Promise.all(Array.from({ length: 50 }, () => post(proxy.url, ask())));
  expect(performance.now() - startedAt).toBeLessThan(2000);
  for (const response of refused) {
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await response.json()).toMatchObject({ error: { code: "overloaded" } });
  }
  expect(proxy.rows().length).toBe(rows);
  for (let each = 0; each < 3000; each++) proxy.app.live.ended({ request_id: `busy-${each}` } as never);
  expect((await post(proxy.url, ask())).status).toBe(200);
});

test("P08: 200 streams at once are all whole, and the event loop keeps its step", async () => {
  await using command = run(["start", "--demo", "--json", "--port", "0"]);
  const { url, pid } = await command.ready();
  const texts = await Promise.all(
    Array.from({ length: 200 }, () => post(url, ask("[demo: long 20] Hello")).then((response) => response.text())),
  );
  expect(texts.filter((text) => text.endsWith("data: [DONE]\n\n"))).toHaveLength(200);
  expect(rssOf(pid)).toBeLessThan(400);
}, 30_000);

test("P20: after 1,000 streams memory is about what it was", async () => {
  await using command = run(demo);
  const { url, pid } = await command.ready();
  const round = async (count: number) => {
    for (let turn = 0; turn < count; turn++)
      await Promise.all(Array.from({ length: 50 }, () => post(url, ask()).then((response) => response.text())));
  };
  await round(10);
  const before = rssOf(pid);
  await round(10);
  expect(rssOf(pid) - before).toBeLessThan(60);
}, 60_000);

test.if(process.platform === "linux")(
  "P12: with few files it serves what it can, and recovers",
  async () => {
    await using command = run(demo);
    const { url, pid } = await command.ready();
    Bun.spawnSync(["prlimit", "--pid", String(pid), "--nofile=64:64"]);
    const burst = await Promise.allSettled(
      Array.from({ length: 150 }, () =>
        post(url, ask(), AbortSignal.timeout(5000)).then((response) => response.text()),
      ),
    );
    expect(burst.length).toBe(150);
    Bun.spawnSync(["prlimit", "--pid", String(pid), "--nofile=4096:4096"]);
    await Bun.sleep(300);
    expect(command.process.exitCode).toBeNull();
    const after = await post(url, ask(), AbortSignal.timeout(8000));
    expect(after.status).toBe(200);
  },
  30_000,
);

test.if(process.platform !== "win32")(
  "P15: stopped for a while and continued, its streams end well",
  async () => {
    await using command = run(demo);
    const { url } = await command.ready();
    const stream = post(url, ask("[demo: long 60] Hello")).then((response) => response.text());
    await Bun.sleep(150);
    command.process.kill("SIGSTOP");
    await Bun.sleep(3000);
    command.process.kill("SIGCONT");
    expect(await stream).toEndWith("data: [DONE]\n\n");
    expect((await post(url, ask())).status).toBe(200);
  },
  20_000,
);

test("P20: years after 2038 and other zones change nothing", async () => {
  let now = Date.parse("2038-01-19T03:14:06Z");
  await using proxy = await startProxy({ clock: { now: () => now } });
  for (let turn = 0; turn < 4; turn++, now += 1000)
    expect((await post(proxy.url, ask("Hello", false))).status).toBe(200);
  expect(proxy.rows().map(({ request_id }) => request_id)).toHaveLength(4);
});

test.each([[[""]], [[" "]], [[1]], ["k"]] as unknown[][])(
  "AU10: the client keys %j stop the start, and never mean that none is needed",
  async (apiKeys) => {
    await using decoy = run(["--version"]);
    await decoy.exited;
    const home = join(decoy.home, "own");
    mkdirSync(home, { mode: 0o700 });
    writeFileSync(join(home, "config.json"), JSON.stringify({ auth: { apiKeys } }), { mode: 0o600 });
    await using command = run(["start", "--json", "--port", "0"], { env: { DRAGOMAN_HOME: home } });
    expect(await command.exited).toBe(1);
    expect(command.stdout()).toBe("");
    expect(command.stderr()).toContain("auth.apiKeys");
  },
);

/** MiB */
function rssOf(pid: number): number {
  if (process.platform !== "linux") return 0;
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1024;
}
