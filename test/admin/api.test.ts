/** Scenario: the admin API: what it answers, and what it makes of odd questions. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { queries, writeFilters } from "../../src/admin/api/query";
import { nameColumns } from "../../src/books/history/entry";
import type { Entry, Filters } from "../../src/books/history/history";
import { readQuery } from "../../src/web/query";
import { entry } from "../support/history-rows";
import { type RunningProxy, startProxy } from "../support/proxy";
import { drawn } from "../support/random";

const now = Date.now();
const minute = 60_000;
const day = 1440 * minute;

let proxy: RunningProxy;

beforeAll(async () => {
  proxy = await startProxy({
    accounts: ["octo-demo", "work-demo"],
    config: { auth: { apiKeys: ["k-alpha-0123456789"] }, modelAliases: { fast: "gpt-5-mini" } },
  });
  const { history } = proxy.app;
  const failed = { http_status: 429, error_type: "rate_limited", input_tokens: null, output_tokens: null };
  for (const differing of [
    { account_id: "octo-demo", started_at_ms: now - 3 * day, client_name: "=cmd|' /C calc'!A0" },
    { account_id: "octo-demo", started_at_ms: now - 3 * minute, upstream_model: "gpt-5", cost: null },
    { account_id: "octo-demo", started_at_ms: now - 2 * minute, ...failed, error_message: 'Wait, "please".\nNow.' },
    { account_id: null, started_at_ms: now - minute, stream: 0, path: "/v1/embeddings", client_model: "+1 more" },
  ] as Partial<Entry>[])
    history.add(entry(differing));
  history.flush();
});
afterAll(() => proxy[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: whatever the answer is
const json = async (path: string): Promise<any> => (await fetch(proxy.url + path)).json();

describe("odd questions", () => {
  const bad: [string, string[]][] = [
    ["limit", ["0", "-1", "abc", "1.5", "0x10", "1e400"]],
    ["cursor_id", ["-1", "abc", "1.5", "9e99"]],
    ["status", ["abc", "99", "600", "200.5"]],
    ["status_class", ["6xx", "44"]],
    ["has_error", ["2", "true"]],
    ["stream", ["yes"]],
    ["from_ms", ["NaN", "-5", "Infinity", "9007199254740993"]],
    ["to_ms", ["tomorrow"]],
  ];
  test.each(bad.flatMap(([name, values]) => values.map((value) => [name, value])))(
    "%s=%s is 400 and named",
    async (name, value) => {
      const response = await fetch(`${proxy.url}/api/admin/requests?${new URLSearchParams({ [name!]: value! })}`);
      expect(response.status).toBe(400);
      expect(await response.json()).toEqual({
        error: { type: "invalid_request", message: expect.stringContaining(`${name}: `), param: name },
      });
    },
  );

  test("a parameter that is given twice is 400 and named, on every path that takes it", async () => {
    for (const path of ["requests", "totals", "statistics", "export"]) {
      const answer = await json(`/api/admin/${path}?status=200&status=429`);
      expect(answer).toMatchObject({ error: { param: "status" } });
    }
    expect(await json("/api/admin/accounts?include_stats=1&since_ms=abc")).toMatchObject({
      error: { param: "since_ms" },
    });
    expect(await json("/api/admin/statistics?by=zebra")).toMatchObject({ error: { param: "by" } });
    expect(await json("/api/admin/statistics?by=day,day")).toMatchObject({ error: { param: "by" } });
    expect(await json("/api/admin/statistics?by=day,model,path")).toMatchObject({ error: { param: "by" } });
    expect(await json("/api/admin/export?format=xml")).toMatchObject({ error: { param: "format" } });
  });

  test("a limit of any size gives 200 rows at most; an empty parameter counts as absent", async () => {
    for (const limit of ["1e9", "1000000000", String(2 ** 53), "200", ""])
      expect((await json(`/api/admin/requests?limit=${limit}`)).items).toHaveLength(4);
    expect((await json("/api/admin/requests?account_id=&status=&has_error=")).items).toHaveLength(4);
  });

  test("an unknown parameter is 400 and named, on every path that takes some", async () => {
    for (const path of [
      "requests",
      "totals",
      "statistics",
      "export",
      "prompts",
      "bill",
      "cache",
      "accounts",
      "budgets",
      "members",
    ])
      for (const name of ["zebra", "__proto__"])
        expect([path, await json(`/api/admin/${path}?${name}=1`)]).toMatchObject([path, { error: { param: name } }]);
  });

  test("no text is more than a text", async () => {
    for (const name of drawn("columns", nameColumns))
      for (const value of ["' OR 1=1 --", "%", "\0", "x".repeat(10_000), '"; DROP TABLE requests', "octo%", "*"]) {
        const query = new URLSearchParams({ [name]: value });
        expect(await json(`/api/admin/requests?${query}`)).toEqual({
          items: [],
          next_cursor_id: null,
          has_more: false,
        });
        expect((await json(`/api/admin/totals?${query}`)).request_count).toBe(0);
        expect((await json(`/api/admin/statistics?by=${name}&${query}`)).groups).toEqual([]);
      }
    expect((await json("/api/admin/meta")).row_count).toBe(4);
  });

  test("an id that no request has is answered with 404", async () => {
    for (const id of ["unknown", "%00", "..%2f..", "..%2f..%2fmeta", "x".repeat(8_000), "' OR 1=1"]) {
      const response = await fetch(`${proxy.url}/api/admin/requests/${id}`);
      expect([response.status, await response.json()]).toEqual([
        404,
        { error: { type: "not_found", message: expect.any(String) } },
      ]);
    }
  });
});

test("filters are written as they are read", () => {
  const all: Filters = {
    account_id: null,
    client_model: "a b&c=d",
    path: "/v1/messages",
    stream: false,
    status: 429,
    status_class: 4,
    has_error: true,
    from_ms: 0,
    to_ms: now,
  };
  expect(readQuery(`http://localhost/?${writeFilters(all)}`, queries.filters)).toEqual(all);
  expect(String(writeFilters({ path: undefined }))).toBe("");
});

describe("accounts", () => {
  test("that GitHub says nothing of are unknown, not 0", async () => {
    await using other = await startProxy();
    other.demo.intercept("/copilot_internal/user", () => new Response("", { status: 500 }), Number.POSITIVE_INFINITY);
    const { items } = (await (await fetch(`${other.url}/api/admin/accounts`)).json()) as { items: object[] };
    expect(items).toEqual([
      expect.objectContaining({
        account_type: null,
        runtime: { entitlement: null, remaining: null, unlimited: false, failed: false },
        unit: "unknown",
        stale: true,
        quota_error: expect.any(String),
      }),
    ]);
  });
});

describe("requests", () => {
  test("one that has ended just now is found, also before it is on disk", async () => {
    await using other = await startProxy();
    const fresh = entry();
    other.app.history.add(fresh);
    expect((await fetch(`${other.url}/api/admin/requests/${fresh.request_id}`)).status).toBe(200);
  });
});

describe("an export", () => {
  test("an export is no table that a spreadsheet runs, also one that parts cells at a semicolon or a tab and knows no quotes there", async () => {
    await using odd = await startProxy();
    const texts = [
      "x;=HYPERLINK(1)",
      "x; +1",
      'x;"=1+1"',
      "x\t-1",
      "x\n@SUM(1)",
      "＝1+1",
      "\t=1",
      "a;b",
      "x;'=1",
      "; ;=1",
    ];
    for (const [index, client_model] of texts.entries())
      odd.app.history.add(entry({ request_id: `odd-${index}`, started_at_ms: now, client_model }));
    odd.app.history.flush();
    const csv = await (await fetch(`${odd.url}/api/admin/export?format=csv`)).text();
    const cells = csv.split(/[;\t\r\n]/).map((cell) => cell.replace(/^[ "]+/, ""));
    expect(cells.filter((cell) => /^[=+\-@＝＋－＠]/.test(cell))).toEqual([]);
    expect(csv).toContain(`,"a;b",`);
    expect(csv).toContain(`,"x;'=HYPERLINK(1)",`);
  });

  test("an export of many rows is whole, each row once, and others are served meanwhile", async () => {
    await using many = await startProxy();
    const count = 12_000;
    for (let index = 0; index < count; index++) {
      many.app.history.add(entry({ request_id: `many-${index}`, started_at_ms: now }));
      if (index % 5_000 === 0) many.app.history.flush();
    }
    many.app.history.flush();
    const response = await fetch(`${many.url}/api/admin/export`);
    let lines = -1;
    let served = 0;
    for await (const chunk of response.body!) {
      for (const byte of chunk) if (byte === 10) lines += 1;
      if (lines < count && (await fetch(`${many.url}/health`)).ok) served += 1;
    }
    expect(lines).toBe(count);
    expect(served).toBeGreaterThan(0);
  });
});

test("a history that cannot be kept is reported, and every endpoint still answers", async () => {
  await using proxy = await startProxy();
  const { history } = proxy.app;
  history.close();
  const meta = (await (await fetch(`${proxy.url}/api/admin/meta`)).json()) as object;
  expect(meta).toMatchObject({ history: "degraded", row_count: null, oldest_row_at_ms: null });
  for (const path of ["requests", "totals", "statistics"]) {
    const response = await fetch(`${proxy.url}/api/admin/${path}`);
    expect([response.status, await response.json()]).toEqual([
      500,
      { error: { type: "internal", message: expect.stringContaining("history") } },
    ]);
  }
});
