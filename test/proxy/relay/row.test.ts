/**
 * Scenario: what is remembered: one row for each exchange, and never content or secrets; `fixtures/scenes/requests.txt` has
 * what a row says.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";

testScenes("requests");
testScenes("rows");

const canary = "CANARY-zebra-umbrella-4711";
const ask = (content: string, more = {}) => ({ model: "gpt-5-mini", messages: [{ role: "user", content }], ...more });

test("100 mixed requests, some aborted, some failing, are exactly 100 rows, and nothing of their content is kept", async () => {
  const key = "k-canary-0123456789";
  await using proxy = await startProxy({ config: { auth: { apiKeys: [key] }, logLevel: "debug" } });
  const send = (path: string, body: unknown, init: RequestInit = {}) =>
    proxy.post(path, body, { ...init, headers: { authorization: `Bearer ${key}` } });
  const read = async (path: string, body: unknown) => (await send(path, body)).text();
  const outcomes: Promise<unknown>[] = [];
  const kinds = [
    () => read("/v1/chat/completions", ask(canary)),
    () => read("/v1/chat/completions", ask(canary, { stream: true })),
    () => read("/v1/chat/completions", ask(`[demo: 500] ${canary}`)),
    () => read("/v1/chat/completions", ask(`[demo: cut] ${canary}`, { stream: true })),
    () => read("/v1/chat/completions", ask(`[demo: error-event] ${canary}`, { stream: true })),
    () => read("/v1/chat/completions", ask(canary, { model: "no-such-model" })),
    () => read("/v1/chat/completions", `{"model":"${canary}`),
    () => read("/v1/embeddings", { model: "text-embedding-3-small", input: [canary] }),
    () => aborted("[demo: silence 5]"),
    () => aborted("[demo: slow-headers 5]"),
  ];
  const aborted = async (directive: string) => {
    const controller = new AbortController();
    const before = proxy.demo.journal.length;
    const response = send("/v1/chat/completions", ask(`${directive} ${canary}`, { stream: true }), {
      signal: controller.signal,
    });
    response.catch(() => {});
    await until(() => proxy.demo.journal.length > before, "the upstream is asked");
    await Bun.sleep(20);
    controller.abort();
    await response.then((started) => started.text()).catch(() => {});
  };
  await send("/v1/models", {}); // 405: no exchange
  for (let index = 0; index < 100; index++) {
    outcomes.push(kinds[index % kinds.length]!());
    if (outcomes.length % 50 === 0) await Promise.all(outcomes.splice(0));
  }
  await Promise.all(outcomes);
  await until(() => proxy.rows().length > 0 && proxy.history.count() >= 100, "100 rows are written");
  await until(() => proxy.app.inFlight.count === 0, "no request runs");
  proxy.app.history.flush();
  expect(proxy.history.count()).toBe(100);

  const token = (
    (await (await fetch(`${proxy.url}/token`, { headers: { "x-api-key": key } })).json()) as { token: string }
  ).token;
  const files = readdirSync(proxy.home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const kept =
    files.map((entry) => readFileSync(join(entry.parentPath, entry.name)).toString("latin1")).join("\n") +
    proxy.lines.join("\n");
  for (const secret of [canary, token, proxy.demo.accounts[0]!.githubToken]) expect(kept).not.toContain(secret);
  expect(kept.split(key)).toHaveLength(2); // config.json, where the owner put it
});
