/**
 * Scenario: `dragoman start` under an orchestrator: probes, a drain of the owner's length, and a log that programs
 * read.
 */
import { expect, jest, spyOn, test } from "bun:test";
import { columnNames } from "../../src/books/history/entry";
import { watchShutdown } from "../../src/cli/start/shutdown";
import { listen } from "../../src/server";
import { startProxy } from "../support/proxy";
import { sharedModel } from "../support/shared-model";
import { until } from "../support/until";
import { ask, scriptedGithub } from "./bench";

const stream = (url: string, content: string) => ask(url, content, { stream: true });
const probe = async (url: string, name: string) => {
  const response = await fetch(`${url}/health/${name}`, { keepalive: false });
  return { status: response.status, body: (await response.json()) as { status: string; degraded?: string[] } };
};

test("a drain with --drain answers probes with 503 at once and new requests a moment later, until the running ones have ended", async () => {
  await using proxy = await startProxy();
  const held = Promise.withResolvers<undefined>();
  proxy.demo.intercept("/chat/completions", () => held.promise, 5);
  const { url, drain } = listen(proxy.app, 0);
  const running = Array.from({ length: 5 }, () => stream(url, "Hello"));
  await until(() => proxy.app.inFlight.count === 5, "all of them run");
  const [noticeMs, notice] = [1_234, Promise.withResolvers<void>()];
  const { sleep } = Bun;
  const waits = spyOn(Bun, "sleep").mockImplementation((ms) => (ms === noticeMs ? notice.promise : sleep(ms)));
  let isOver = false;
  const drained = drain(noticeMs).then(() => (isOver = true));
  waits.mockRestore();
  expect(await probe(url, "ready")).toMatchObject({ status: 503, body: { status: "draining" } });
  expect((await probe(url, "live")).status).toBe(200);
  // A load balancer may not have noticed yet.
  const late = await stream(url, "Hello");
  expect([late.status, late.headers.get("connection")]).toEqual([200, "close"]);
  expect(await late.text()).toEndWith("data: [DONE]\n\n");
  notice.resolve();
  const refused = await stream(url, "Hello");
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await refused.text()).toContain("shutting down");
  expect([(await probe(url, "ready")).status, isOver]).toEqual([503, false]);
  held.resolve(undefined);
  for (const answer of running) expect(await (await answer).text()).toEndWith("data: [DONE]\n\n");
  expect(await drained).toBe(true);
});

test("a drain answers probes for as long as a process has requests to finish", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using command = github.start(["--drain", "300"]);
  const { url } = await command.ready();
  const text = (await stream(url, "[demo: silence 60] Hello")).text();
  command.process.kill("SIGTERM");
  await until(() => command.stderr().includes("have 300 s to finish"), "the time that requests have is printed");
  expect(await probe(url, "ready")).toMatchObject({ status: 503, body: { status: "draining" } });
  command.process.kill("SIGTERM");
  expect(await command.exited).toBe(130);
  expect(await text).toContain("shutting down");
});

test.each([
  ["SIGHUP", undefined, 30_000, undefined],
  ["SIGINT", 4_000, 4_000, 1_000],
  ["SIGTERM", 300_000, 300_000, 5_000],
] as const)(
  "a drain after %s, of %p ms, 30 s by default, lasts %i ms; new requests are served for %p ms, 5 s at most",
  async (signal, drainMs, grace, noticeMs) => {
    jest.useFakeTimers();
    try {
      const { first, over } = watchShutdown({ drainMs });
      process.emit(signal);
      expect(await first).toEqual({ why: signal, grace, noticeMs });
      let end = "";
      void over.then((how) => (end = how));
      for (const [ms, expected] of [
        [grace - 1, ""],
        [1, "late"],
      ] as const) {
        jest.advanceTimersByTime(ms);
        await Promise.resolve();
        expect(end).toBe(expected);
      }
    } finally {
      jest.useRealTimers();
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(signal);
    }
  },
);

test("with --log-format json every line is an object, and each request has one with all of its row", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using command = github.start(["--log-format", "json", "--drain", "1"]);
  const { url } = await command.ready();
  await (await stream(url, "Hello")).text();
  await (await stream(url, "[demo: 500] Hello")).text();
  const text = (await stream(url, "[demo: silence 20] Hello")).text();
  const startedAt = performance.now();
  command.process.kill("SIGTERM");
  expect(await command.exited).toBe(0);
  expect(performance.now() - startedAt).toBeGreaterThan(900);
  expect(await text).toContain("shutting down");
  const lines = command
    .stderr()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const { time, level, message } of lines) {
    expect(new Date(time as string).toISOString()).toBe(time as string);
    expect(["info", "warn"]).toContain(level as string);
    expect(message).not.toBe("");
  }
  expect(lines.map(({ message }) => message)).toContain(`Address: ${url}`);
  const rows = lines.filter((line) => "request_id" in line);
  // What a prompt was made of is long, and on its page.
  const logged = columnNames.filter((name) => name !== "portions");
  for (const row of rows) expect(Object.keys(row)).toEqual(expect.arrayContaining(logged));
  const served = { level: "info", http_status: 200, upstream_model: sharedModel };
  expect(rows).toMatchObject([
    {
      ...served,
      fixups: expect.arrayContaining(["object-field"]),
      attempts: [{ status: 200, ms: expect.any(Number) }],
    },
    { level: "warn", error_type: expect.any(String) },
    { level: "warn", error_type: "shutting_down" },
  ]);
});

test("--log-format json hides secrets in every field, and a quote in one does not break the line", async () => {
  const key = 'quoted"secret-12345';
  await using proxy = await startProxy({ logFormat: "json", env: { DRAGOMAN_API_KEY: key } });
  const response = await proxy.post(
    "/v1/chat/completions",
    { model: `x ${key} gho_0123456789abcdef0123456789abcdef0123`, messages: [] },
    { headers: { "x-api-key": key } },
  );
  expect(response.status).toBeGreaterThanOrEqual(400);
  const text = proxy.lines.join("");
  expect(text).not.toContain("secret-12345");
  expect(text).not.toContain("gho_");
  const rows = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(rows.find((row) => "request_id" in row)?.client_model).toBe("x [secret] [github token]");
});
