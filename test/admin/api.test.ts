/** Scenario: the admin API: texts, exports and a history that is away; `fixtures/pages/` has its answers, also to odd questions. */
import { afterAll, expect, test } from "bun:test";
import { nameColumns } from "../../src/books/history/entry";
import { entry } from "../support/history-rows";
import { startProxy } from "../support/proxy";
import { drawn } from "../support/random";

const now = Date.now();

const proxy = await startProxy();
for (const minutes of [1, 2, 3, 4])
  proxy.history.add(entry({ account_id: "octo-demo", started_at_ms: now - minutes * 60_000 }));
afterAll(() => proxy[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: whatever the answer is
const json = async (path: string): Promise<any> => (await fetch(proxy.url + path)).json();

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

test("an id longer than any that a request has is answered with 404", async () => {
  expect((await fetch(`${proxy.url}/api/admin/requests/${"x".repeat(8_000)}`)).status).toBe(404);
});

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
