/** Scenario: the page of the prompt cache and its numbers in the admin API. */
import { afterAll, describe, expect, test } from "bun:test";
import type { CacheReport } from "../../src/admin/api/cache";
import { demoAccounts, quotas } from "../../src/demo/accounts";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { entry } from "../support/history-rows";
import { startProxy } from "../support/proxy";

const credits = (value: number) => value * 1e9;
const now = Date.now();
const hour = 3_600_000;
/** List prices of the demo: 300 and 75 credits for a million tokens, cached 30 and 7.5, written 375. */
const [claude, gpt] = ["claude-sonnet-4.6", exampleModels.flash];

const [account] = demoAccounts();
const able = { ...account!, plan: "individual_pro", quota: quotas.credits() };
const proxy = await startProxy({ demo: { accounts: [able], generation: "C" } });
const add = (hoursAgo: number, row: Parameters<typeof entry>[0]) =>
  proxy.app.history.add(entry({ started_at_ms: now - hoursAgo * hour, client_name: "cli/1", ...row }));
const prompt = { input_tokens: 1_000_000 };
add(1, {
  ...prompt,
  upstream_model: claude,
  cached_tokens: 800_000,
  cache_write_tokens: 100_000,
  session: "aaaaaaaaaaaa",
});
add(2, { ...prompt, upstream_model: gpt, cached_tokens: 900_000, client_name: "other/2" });
add(3, {
  ...prompt,
  upstream_model: gpt,
  cached_tokens: 0,
  cache_miss: "system",
  cache_lost_cost: credits(67.5),
  session: "bbbbbbbbbbbb",
});
add(4, { ...prompt, upstream_model: gpt, cached_tokens: 200_000, cache_miss: "tools", cache_lost_cost: credits(54) });
add(5, { ...prompt, upstream_model: claude, cached_tokens: null, http_status: 500, error_type: "upstream" });
add(10 * 24, { ...prompt, upstream_model: "gone-1", cached_tokens: 500_000 });
proxy.app.history.flush();
afterAll(() => proxy[Symbol.asyncDispose]());

const report = async (query = ""): Promise<CacheReport> =>
  (await fetch(`${proxy.url}/api/admin/cache${query}`)).json() as Promise<CacheReport>;

describe("GET /api/admin/cache", () => {
  test("adds up the last week, without requests of which nothing is known", async () => {
    const { totals, models, clients, sessions } = await report();
    expect(totals).toEqual({
      request_count: 4,
      input_tokens: 4_000_000,
      cached_tokens: 1_900_000,
      cached_share: 0.475,
      // 0.8 × (300 − 30) − 0.1 × (375 − 300) + 1.1 × (75 − 7.5)
      saved_nano_credits: credits(216 - 7.5 + 74.25),
      lost_nano_credits: credits(121.5),
    });
    expect(models.map(({ name, cached_share }) => [name, cached_share])).toEqual([
      [gpt, 1_100_000 / 3_000_000],
      [claude, 0.8],
    ]);
    expect(clients.map(({ name, saved_nano_credits }) => [name, saved_nano_credits])).toEqual([
      ["cli/1", credits(216 - 7.5 + 13.5)],
      ["other/2", credits(60.75)],
    ]);
    expect(sessions.map(({ name, cached_share }) => [name, cached_share]).sort()).toEqual([
      ["aaaaaaaaaaaa", 0.8],
      ["bbbbbbbbbbbb", 0],
    ]);
  });

  test("names why turns missed, and the turns", async () => {
    const { misses, turns } = await report();
    expect(
      misses.map(({ reason, uncached_tokens, ...miss }) => [reason, uncached_tokens, miss.lost_nano_credits]),
    ).toEqual([
      ["system", 1_000_000, credits(67.5)],
      ["tools", 800_000, credits(54)],
    ]);
    expect(misses[0]!.changed).toBe("The system prompt changed.");
    expect(turns.map(({ reason, session }) => [reason, session])).toEqual([
      ["system", "bbbbbbbbbbbb"],
      ["tools", null],
    ]);
  });

  test("takes another period; a model without a price saves an unknown amount", async () => {
    const { totals, models } = await report(`?from_ms=${now - 30 * 24 * hour}&to_ms=${now - 10 * 24 * hour}`);
    expect([totals.request_count, totals.saved_nano_credits]).toEqual([1, null]);
    expect(models.map(({ name }) => name)).toEqual(["gone-1"]);
    expect((await fetch(`${proxy.url}/api/admin/cache?from_ms=x`)).status).toBe(400);
  });
});

describe("the page", () => {
  const page = async (query = "") => {
    const response = await fetch(`${proxy.url}/admin/cache${query}`);
    expect(response.status).toBe(200);
    return response.text();
  };

  test("the cache page shows the same, and links to the requests", async () => {
    const html = await page();
    expect(html).toContain("48%");
    expect(html).toContain("The system prompt changed.");
    expect(html).toMatch(/href="\/admin\/requests\?from_ms=\d+&amp;cache_miss=system"/);
    expect(html).toMatch(/href="\/admin\/requests\?from_ms=\d+&amp;session=aaaaaaaaaaaa"/);
    expect(html).not.toContain("gone-1");
    expect(await page("?period=month")).toContain("gone-1");
    // No period is longer than what the history keeps.
    const tabs = [...html.matchAll(/href="\/admin\/cache\?period=\w+"[^>]*>([^<]+)/g)].map(([, label]) => label);
    expect(tabs).toEqual(["Today", "Last 7 days", "Last 14 days"]);
  });

  test("the page of a request that missed the cache says why", async () => {
    const { turns } = await report();
    const html = await (await fetch(`${proxy.url}/admin/requests/${turns[0]!.request_id}`)).text();
    expect(html).toContain("The system prompt changed.");
  });

  test("the cache page of an empty history says that it is empty", async () => {
    await using empty = await startProxy({ accounts: [] });
    expect(await (await fetch(`${empty.url}/admin/cache`)).text()).toContain("No usage in this time");
  });
});
