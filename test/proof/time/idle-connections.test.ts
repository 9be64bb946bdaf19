/**
 * Scenario: connections on which nobody asks any more, after each kind of answer; and answers that take longer than the
 * idle limit.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { startProxy } from "../../support/proxy";
import { describeWithDatabases } from "../../support/shared-postgres";
import { startTeamApp, type TeamApp } from "../../support/team-app";
import { until } from "../../support/until";

/** Sends one request and nothing more. @returns What came until the server closed the connection. */
function untilClosed(url: string, method: string, path: string, body = ""): Promise<{ text: string }> {
  const { promise, resolve } = Promise.withResolvers<{ text: string }>();
  let text = "";
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("data", (bytes) => {
    text += bytes;
  });
  socket.on("error", () => {}); // the close follows
  socket.on("close", () => resolve({ text }));
  socket.write(
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return promise;
}

test("a connection that nobody uses is closed after every kind of answer", async () => {
  await using proxy = await startProxy();
  proxy.app.limits.connectionIdle = 1_000;
  const messages = [{ role: "user", content: "Hello" }];
  const chat = (more: object) => JSON.stringify({ model: "gpt-5-mini", messages, ...more });
  const claude = JSON.stringify({ model: "claude-sonnet-4.6", messages, max_tokens: 100, stream: true });
  const closed = await Promise.all([
    untilClosed(proxy.url, "POST", "/v1/chat/completions", chat({})),
    untilClosed(proxy.url, "POST", "/v1/chat/completions", chat({ stream: true })),
    untilClosed(proxy.url, "POST", "/v1/messages", claude),
    untilClosed(proxy.url, "POST", "/v1/messages/count_tokens", claude),
    untilClosed(proxy.url, "POST", "/v1/chat/completions", chat({ model: "nobody-has-it" })),
    untilClosed(proxy.url, "POST", "/v1/embeddings", '{"model":"text-embedding-3-small","input":"x"}'),
    untilClosed(proxy.url, "GET", "/api/admin/totals"),
    untilClosed(proxy.url, "GET", "/admin"),
  ]);
  expect(closed.map(({ text }) => text.slice(9, 12))).toEqual(["200", "200", "200", "200", "404", "200", "200", "200"]);
  expect(closed[1]!.text).toContain("[DONE]");
  expect(closed[2]!.text).toContain("message_stop");
}, 25_000);

test("a stream whose model is silent for longer than the idle limit comes whole", async () => {
  await using proxy = await startProxy();
  Object.assign(proxy.app.limits, { connectionIdle: 1_000, keepAlive: 200 });
  // Bun looks every four seconds.
  const messages = [{ role: "user", content: "[demo: silence 9] Hello" }];
  const body = JSON.stringify({ model: "gpt-5-mini", messages, stream: true });
  const { text } = await untilClosed(proxy.url, "POST", "/v1/chat/completions", body);
  expect(text).toContain("[DONE]");
}, 30_000);

test("the events of a live page go on for longer than the idle limit", async () => {
  await using proxy = await startProxy();
  Object.assign(proxy.app.limits, { connectionIdle: 1_000, keepAlive: 200 });
  const feed = await fetch(`${proxy.url}/api/admin/live`);
  expect(feed.headers.get("content-type")).toStartWith("text/event-stream");
  const reader = feed.body!.getReader();
  // Bun looks every four seconds.
  for (const endsAt = performance.now() + 9_000; performance.now() < endsAt; )
    expect((await reader.read()).done).toBe(false);
  await reader.cancel();
}, 30_000);

describeWithDatabases("a slow database", (postgres) => {
  let team: TeamApp;
  beforeAll(async () => {
    team = await startTeamApp(postgres, { idleSeconds: 1 });
  });
  afterAll(async () => {
    await team[Symbol.asyncDispose]();
  });

  test("a page and an answer of the admin API that take longer than the idle limit come whole", async () => {
    const url = team.env.DRAGOMAN_DATABASE_URL!;
    team.app.limits.connectionIdle = 1_000;
    const slow = postgres.administer("BEGIN; LOCK TABLE dragoman.requests; SELECT pg_sleep(4.3); COMMIT", url);
    const locked =
      "SELECT 1 FROM pg_locks WHERE relation = 'dragoman.requests'::regclass AND mode = 'AccessExclusiveLock'";
    await until(async () => (await postgres.administer(locked, url)).length > 0, "a question waits for the lock");
    const paths = ["/api/admin/statistics?by=model", "/api/admin/totals", "/admin"];
    const answers = await Promise.all(paths.map((path) => untilClosed(team.url, "GET", path)));
    expect(answers.map(({ text }) => text.slice(0, 12))).toEqual(paths.map(() => "HTTP/1.1 200"));
    await slow;
  }, 25_000);
});
