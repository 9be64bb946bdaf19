/** Scenario: budgets on their page with many holders; `fixtures/books/budgets.txt` and `pages.txt` have its amounts and forms. */
import { expect, test } from "bun:test";
import type { Subject } from "../../../src/people/budgets/budgets";
import type { Reservation } from "../../../src/people/budgets/entries";
import { credits } from "../../support/amounts";
import { startProxy } from "../../support/proxy";

test("of a budget for each key, who used most of their own limit comes first, page by page", async () => {
  const each = {
    name: "Each",
    unit: "requests",
    limit: 4,
    per: "day",
    each: "key",
    limits: { "key-1": 1, "key-2": 40 },
  };
  await using proxy = await startProxy({ config: { budgets: [each] } });
  const { budgets } = proxy.app;
  const amounts = credits(0);
  const reserve = (key: string) => budgets.reserve({ account: "octo", key, model: "gpt-4.1" } as Subject, amounts);
  for (const key of [...Array(60).keys(), 30, 30].map((at) => `key-${at}`))
    budgets.settle((await reserve(key)) as Reservation, { model: "gpt-4.1", expected: amounts, real: amounts });
  await reserve("key-30");
  const textOf = async (path: string) => (await fetch(proxy.url + path.replaceAll("&amp;", "&"))).text();
  const rowsIn = (text: string) => [...text.matchAll(/key_name=(key-\d+)/g)].map(([, name]) => name);
  const page = await textOf("/admin/budgets");
  expect(rowsIn(page)).toEqual(["key-1", "key-30", "key-0", "key-10", "key-11"]);
  expect(page).toContain("Exhausted for some");
  const [, path] = /href="([^"]+)">All 60 keys/.exec(page)!;
  const first = await textOf(path!);
  const last = await textOf(/rel="next" href="([^"]+)"/.exec(first)![1]!);
  const all = [...rowsIn(first), ...rowsIn(last)];
  expect([rowsIn(first).length, new Set(all).size, all.at(-1)]).toEqual([50, 60, "key-2"]);
  expect(last).not.toContain('rel="next"');
  const itemsOf = async (query: string) => JSON.parse(await textOf(`/api/admin/budgets?budget=Each&${query}`)).items;
  expect(await itemsOf("limit=25&offset=50")).toMatchObject([
    { used: null, exhausted: false, holders: { count: 60, next_offset: null } },
  ]);
  expect(await itemsOf("limit=3")).toMatchObject([
    { exhausted: true, holders: { items: [{ name: "key-1" }, { used: 3, reserved: 1 }, { used: 1, reserved: 0 }] } },
  ]);
});
