/** Scenario: the admin API: what it answers, and what it makes of odd questions. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { adminEndpoints } from "../../src/admin/api/plugin";
import { queries, writeFilters } from "../../src/admin/api/query";
import { nameColumns } from "../../src/books/history/entry";
import type { Entry, Filters } from "../../src/books/history/history";
import { readQuery } from "../../src/web/query";
import { entry } from "../support/history-rows";
import { type RunningProxy, startProxy } from "../support/proxy";

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

/** Every path of the admin API, its parameters filled in. */
const everyPath = adminEndpoints().map(({ method, path }) => ({ method, path: path.replace(/:\w+/g, "x") }));

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

  test("a limit of any size gives 200 rows at most; an empty or unknown parameter counts as absent", async () => {
    for (const limit of ["1e9", "1000000000", String(2 ** 53), "200", ""])
      expect((await json(`/api/admin/requests?limit=${limit}`)).items).toHaveLength(4);
    expect(
      (await json("/api/admin/requests?account_id=&status=&has_error=&zebra=1&zebra=2&__proto__=1")).items,
    ).toHaveLength(4);
  });

  test("no text is more than a text", async () => {
    for (const name of nameColumns)
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

describe("meta", () => {
  test("describes the program and its history", async () => {
    expect(await json("/api/admin/meta")).toEqual({
      dbPath: proxy.app.environment.historyFile,
      retentionDays: 14,
      maxRows: 200_000,
      version: "0.0.0-test",
      demo: true,
      started_at_ms: expect.any(Number),
      history: "ok",
      row_count: 4,
      oldest_row_at_ms: now - 3 * day,
      running_count: 0,
      time_zone: "UTC",
      facts: expect.any(Array),
    });
  });
});

describe("accounts", () => {
  test("are as they are known, in their order, without statistics unless asked", async () => {
    const { items } = await json("/api/admin/accounts");
    expect(items).toEqual([
      {
        account_id: "octo-demo",
        account_key: "github.com/octo-demo",
        account_type: "individual",
        host: "github.com",
        app: "vscode",
        kind: "person",
        temporary: false,
        auto_only: false,
        warnings: [],
        runtime: { entitlement: 300, remaining: expect.any(Number), unlimited: false, failed: false },
        state: "ready",
        until_ms: null,
        reason: null,
        limited_models: [],
        unit: "premium",
        reset_at_ms: expect.any(Number),
        overage: false,
        overage_count: 0,
        stale: false,
        updated_at_ms: expect.any(Number),
        quota_error: null,
      },
      expect.objectContaining({
        account_id: "work-demo",
        account_type: "business",
        runtime: { entitlement: 0, remaining: 0, unlimited: true, failed: false },
      }),
    ]);
  });

  test("are counted since a day ago, or since when is asked", async () => {
    const [octo, work] = (await json("/api/admin/accounts?include_stats=1")).items;
    expect(octo.stats).toEqual({
      since_ms: expect.any(Number),
      request_count: 2,
      error_count: 1,
      tokens_total: 30,
      avg_duration_ms: 1_234,
      last_request_at_ms: now - 2 * minute,
    });
    expect(Math.abs(octo.stats.since_ms - (Date.now() - day))).toBeLessThan(minute);
    expect(work.stats).toMatchObject({
      request_count: 0,
      error_count: 0,
      tokens_total: 0,
      avg_duration_ms: null,
      last_request_at_ms: null,
    });
    const since = await json(`/api/admin/accounts?include_stats=1&since_ms=${now - 9 * day}`);
    expect(since.items[0].stats).toMatchObject({ since_ms: now - 9 * day, request_count: 3, tokens_total: 60 });
    const late = await json(`/api/admin/accounts?include_stats=1&since_ms=${now - 2 * minute}`);
    expect(late.items[0].stats).toMatchObject({ request_count: 1, tokens_total: null });
  });

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
  test("the requests come in pages, the newest first", async () => {
    const first = await json("/api/admin/requests?limit=3");
    expect(first).toMatchObject({ has_more: true, next_cursor_id: 2 });
    expect(first.items.map(({ id }: { id: number }) => id)).toEqual([4, 3, 2]);
    const second = await json("/api/admin/requests?limit=3&cursor_id=2");
    expect(second).toMatchObject({ has_more: false, next_cursor_id: null, items: [{ id: 1 }] });
    expect((await json("/api/admin/requests?cursor_id=0")).items).toEqual([]);
  });

  test("have the types that a reader expects", async () => {
    const { items } = await json("/api/admin/requests?limit=1");
    expect(items[0]).toMatchObject({
      stream: false,
      tokens_estimated: false,
      attempts: [{ account: "ada", status: 200, ms: 300 }],
      fixups: ["missing-created"],
      dropped: [],
      cached_tokens: null,
      account_id: null,
    });
    const { item, running } = await json(`/api/admin/requests/${items[0].request_id}`);
    expect([item, running]).toEqual([items[0], false]);
  });

  test("one that has ended just now is found, also before it is on disk", async () => {
    await using other = await startProxy();
    const fresh = entry();
    other.app.history.add(fresh);
    expect((await fetch(`${other.url}/api/admin/requests/${fresh.request_id}`)).status).toBe(200);
  });
});

describe("statistics", () => {
  test("go by one or two dimensions, with short words for the usual ones", async () => {
    const { by, groups, totals, others } = await json(`/api/admin/statistics?by=account,status&to_ms=${now}`);
    expect(by).toEqual(["account_id", "status_class"]);
    expect(
      groups.map(({ key, request_count }: { key: object; request_count: number }) => [key, request_count]),
    ).toEqual([
      [{ account_id: "octo-demo", status_class: "2xx" }, 2],
      [{ account_id: "octo-demo", status_class: "4xx" }, 1],
      [{ account_id: null, status_class: "2xx" }, 1],
    ]);
    expect(groups[1].filters).toEqual({ account_id: "octo-demo", status_class: 4, to_ms: now });
    expect([totals.request_count, others]).toEqual([4, null]);
    expect((await json("/api/admin/statistics")).by).toEqual(["day"]);
    expect((await json("/api/admin/statistics?by=hour,model")).by).toEqual(["hour", "upstream_model"]);
  });
});

describe("an export", () => {
  test("an export is a table that no spreadsheet runs", async () => {
    const response = await fetch(`${proxy.url}/api/admin/export?to_ms=${now}`);
    expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(response.headers.get("content-disposition")).toMatch(
      /^attachment; filename="dragoman-requests-\d{4}-\d\d-\d\d\.csv"$/,
    );
    const text = await response.text();
    const [head, newest] = text.split("\r\n");
    expect(head).toStartWith("started_at,id,request_id,started_at_ms,duration_ms,");
    expect(newest).toStartWith(`${new Date(now - minute).toISOString()},4,`);
    expect(text).toEndWith("\r\n");
    expect(text).toContain(",'=cmd|' /C calc'!A0,");
    expect(text).toContain(",'+1 more,");
    expect(text).toContain(',"Wait, ""please"".\nNow.",');
    expect(text).toContain(',"[{""account"":""ada"",""status"":200,""ms"":300}]",');
  });

  test("nor one that parts cells at a semicolon or a tab, and knows no quotes there", async () => {
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

  test("an export of nothing is a head, or an empty list", async () => {
    const csv = await (await fetch(`${proxy.url}/api/admin/export?path=none`)).text();
    expect(csv.trimEnd().split("\r\n")).toHaveLength(1);
    expect(await json("/api/admin/export?format=json&path=none")).toEqual([]);
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

describe("models", () => {
  test("have limits, price, accounts, aliases and unsupported fields", async () => {
    proxy.app.unsupportedParams.learn("gpt-5-mini", "service_tier");
    const { items } = await json("/api/admin/models");
    const mini = items.find(({ id }: { id: string }) => id === "gpt-5-mini");
    expect(mini).toMatchObject({
      name: expect.any(String),
      kind: "chat",
      enabled: true,
      endpoints: expect.arrayContaining(["/chat/completions"]),
      limits: { context: expect.any(Number), output: expect.any(Number), inputs: null },
      price: { premium: false, units: 0, tokens: null, long: null },
      accounts: ["octo-demo", "work-demo"],
      aliases: ["fast"],
      refused_fields: [{ field: "service_tier", until_ms: expect.any(Number) }],
    });
    expect(items.some(({ enabled }: { enabled: boolean }) => !enabled)).toBe(true);
  });

  test("cannot be listed without an account, and the error says what to do", async () => {
    await using none = await startProxy({ accounts: [] });
    const response = await fetch(`${none.url}/api/admin/models`);
    expect([response.status, await response.json()]).toEqual([
      503,
      { error: { type: "no_account", message: expect.stringContaining("dragoman auth") } },
    ]);
    expect(await (await fetch(`${none.url}/api/admin/accounts`)).json()).toEqual({ items: [] });
  });
});

test("responses are not cached by browsers and not readable by other origins", async () => {
  for (const { method, path } of everyPath) {
    if (method === "POST") continue;
    const { headers } = await fetch(proxy.url + path, { method: "HEAD" });
    expect([path, headers.get("access-control-allow-origin")]).toEqual([path, null]);
    if (!path.endsWith("/x")) expect([path, headers.get("cache-control")]).toEqual([path, "no-store"]);
  }
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
