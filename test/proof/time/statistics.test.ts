/**
 * Rows: how soon pages and sums of 200,000 rows are there, and for how long they hold the thread that serves everybody.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Entry, type LocalHistory, openHistory } from "../../../src/books/history/history";
import { longestHeld, mostHeldMs } from "../../support/held";
import { entry, noon } from "../../support/history-rows";
import { leastOf, took } from "../../support/least";
import { startProxy } from "../../support/proxy";

const day = 86_400_000;
let folder: string;
let history: LocalHistory;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "dragoman-"));
  const path = join(folder, "admin.sqlite");
  history = openHistory(path, { retentionDays: () => 14, maxRows: () => 300_000, warn: () => {}, now: () => noon });
  seed(path);
  await history.prune();
});
afterAll(() => {
  history.close();
  rmSync(folder, { recursive: true, force: true });
});

test.each<[what: string, most: number, ask: () => unknown]>([
  ["a page without a filter", 20, () => history.list({}, 50)],
  ["a page of a rare account", 20, () => history.list({ account_id: "rare" }, 50)],
  [
    "a page with three filters",
    20,
    () => history.list({ path: "/v1/messages", has_error: true, client_name: "codex/1" }, 50),
  ],
  ["a page of a rare path", 20, () => history.list({ path: "/rare" }, 50)],
  ["a page of a key and a project", 20, () => history.list({ key_name: "key-1", project: "acme" }, 50)],
  ["a page of failures", 20, () => history.list({ has_error: true }, 50)],
  ["a page of nobody's", 20, () => history.list({ client_name: "nobody" }, 50)],
  ["a page of a prompt", 20, () => history.list({ prompt: "00000000005de367" }, 50)],
  ["a page of a day ten days ago", 20, () => history.list({ from_ms: noon - 11 * day, to_ms: noon - 10 * day }, 50)],
  ["the newest prompts", 50, () => history.prompts({}, 50)],
  ["the newest prompts of a project", 50, () => history.prompts({ project: "acme" }, 50)],
  ["the prompts of a rare project", 50, () => history.prompts({ project: "rare" }, 50)],
  ["the largest sessions of a week", 50, () => history.largestSessions({ from_ms: noon - 7 * day }, 25)],
  ["the totals of a day", 50, () => history.totals({ from_ms: noon - day })],
  ["the totals of all", 50, () => history.totals({})],
  ["the totals of one model", 50, () => history.totals({ upstream_model: "gpt-5" })],
  ["the totals of failures", 50, () => history.totals({ has_error: true, client_name: "codex/1" })],
  ["the sums by day and model", 50, () => history.statistics({}, ["day", "upstream_model"])],
  ["the sums of a day by hour", 50, () => history.statistics({ from_ms: noon - day }, ["hour"])],
  ["the sums of a week by client", 50, () => history.statistics({ from_ms: noon - 7 * day }, ["client_name"])],
  ["the sums by account", 50, () => history.statistics({}, ["account_key", "account_id"])],
  ["the sums by hour and model", 2_000, () => history.statistics({}, ["hour", "upstream_model"])],
  ["the sums by account and client", 2_000, () => history.statistics({}, ["account_id", "client_name"])],
])("%s: there within %d ms, and the thread is never held for 50 ms", async (_what, most, ask) => {
  let held = Number.POSITIVE_INFINITY;
  const measure = () =>
    took(async () => {
      held = Math.min(held, await longestHeld(async () => void (await ask())));
    });
  expect(await leastOf(most, measure)).toBeLessThan(most);
  expect(held).toBeLessThan(mostHeldMs);
});

test("the page Requests lists the newest of 200,000 within 500 ms, before their sums are known", async () => {
  await using proxy = await startProxy();
  seed(proxy.app.environment.historyFile, Date.now());
  let text = "";
  const measure = () =>
    took(async () => {
      const reader = (await fetch(`${proxy.url}/admin/requests`))
        .body!.pipeThrough(new TextDecoderStream())
        .getReader();
      text = "";
      while (!text.includes("</table>")) text += (await reader.read()).value ?? "";
      await reader.cancel();
    });
  const first = await measure();
  expect(text).not.toContain("200,000");
  expect(await leastOf(500, async () => Math.min(first, await measure()))).toBeLessThan(500);
});

/** Fourteen days, until then, of a busy owner: three common accounts and a rare one, four models, some failures. */
function seed(path: string, until = noon): void {
  const database = new Database(path, { strict: true });
  const pick = (...values: string[]) =>
    `CASE n % ${values.length} ${values.map((value, at) => `WHEN ${at} THEN '${value}'`).join(" ")} END`;
  const account = `CASE WHEN n % 9973 THEN ${pick("ada", "bob", "cyd")} ELSE 'rare' END`;
  const told: Partial<Record<keyof Entry, string>> = {
    request_id: "'seeded-' || n",
    started_at_ms: `${until} - (200000 - n) * 6048 - n % 977`,
    duration_ms: "500 + n * 7919 % 60000",
    first_byte_ms: "CASE WHEN n % 50 THEN 200 + n * 104729 % 4000 END",
    path: "CASE WHEN n = 77777 THEN '/rare' WHEN n % 40 THEN '/v1/messages' ELSE '/v1/embeddings' END",
    upstream_endpoint: pick("/v1/messages", "/chat/completions", "/responses"),
    account_id: account,
    account_key: `'github.com/' || ${account}`,
    client_model: pick("claude-sonnet-4.6", "gpt-5", "gpt-5-mini", "gemini-3-pro"),
    upstream_model: pick("claude-sonnet-4.6", "gpt-5", "gpt-5-mini", "gemini-3-pro"),
    stream: "n % 40 > 0",
    session: "'session-' || n / 30",
    key_name: pick("key-0", "key-1", "key-2"),
    prompt: "printf('%016x', n / 20 * 7919)",
    project: "CASE WHEN n / 20 % 500 = 0 THEN 'rare' WHEN n / 20 % 2 THEN 'acme' ELSE 'billing' END",
    initiator: pick("user", "agent", "agent"),
    http_status: "CASE WHEN n % 50 THEN 200 ELSE 429 END",
    error_type: "CASE WHEN n % 50 = 0 THEN 'rate_limited' END",
    client_name: pick("claude-cli/2", "codex/1", "opencode/3", "OpenAI/Python", "curl/8"),
    input_tokens: "CASE WHEN n % 50 THEN n * 31 % 90000 END",
    cached_tokens: "CASE WHEN n % 50 THEN n * 17 % 50000 END",
    cost: "CASE WHEN n % 50 THEN n * 7 % 5000000000 END",
  };
  const literal = (value: unknown) => (typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value));
  const values = Object.entries(entry()).map(([name, value]) => told[name as keyof Entry] ?? literal(value));
  database.run(`INSERT INTO requests (${Object.keys(entry()).join(", ")})
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200000)
    SELECT ${values.join(", ")} FROM numbers`);
  database.close();
}
