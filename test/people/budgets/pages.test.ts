/** Scenario: budgets on their page with many holders, and in the middle of a period; `fixtures/books/pages.txt` has its forms. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subject } from "../../../src/people/budgets/budgets";
import type { Reservation } from "../../../src/people/budgets/entries";
import { credits } from "../../support/amounts";
import { type RunningProxy, startProxy } from "../../support/proxy";

const admin = async (proxy: RunningProxy, path = "", body?: unknown) => {
  const response = await fetch(`${proxy.url}/api/admin/budgets${path}`, {
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    headers: { "content-type": "application/json" },
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

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
  const { body } = await admin(proxy, "?budget=Each&limit=25&offset=50");
  expect(body.items).toMatchObject([{ used: null, exhausted: false, holders: { count: 60, next_offset: null } }]);
  const top = (await admin(proxy, "?budget=Each&limit=3")).body;
  expect(top.items).toMatchObject([
    { exhausted: true, holders: { items: [{ name: "key-1" }, { used: 3, reserved: 1 }, { used: 1, reserved: 0 }] } },
  ]);
});

test("the parts of a budget are what it has counted, also when it is added in the middle of its period", async () => {
  await using proxy = await startProxy({
    config: { auth: { apiKeys: [{ name: "laptop", key: "k-of-the-laptop-0001" }] } },
  });
  const body = JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] });
  const send = async (count: number) => {
    for (let at = 0; at < count; at += 1) {
      const headers = { "x-api-key": "k-of-the-laptop-0001" };
      await (await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", headers, body })).text();
    }
  };
  const parts = async () => {
    const page = await (await fetch(`${proxy.url}/admin/budgets`)).text();
    const text = page.replace(/<[^>]+>/g, " ").replace(/\s+/g, " ");
    return {
      used: Number(/(\d+) of 1,000 requests used/.exec(text)?.[1]),
      sum: [...text.matchAll(/(\d+) requests? (?=Counted|Resets|the rest|laptop)/g)].reduce(
        (sum, [, each]) => sum + Number(each),
        0,
      ),
      since: /Counted since .*?, when it was added/.test(text),
      from: Number(/from_ms=(\d+)">Requests since then/.exec(page)?.[1]),
    };
  };
  await send(5);
  const before = Date.now();
  await admin(proxy, "", { name: "month", unit: "requests", limit: 1000, per: "month" });
  await send(2);
  expect(await parts()).toMatchObject({ used: 2, sum: 2, since: true });
  expect((await parts()).from).toBeGreaterThanOrEqual(before);
  // One that is added again goes on with what it had used before, so a forecast must not begin at this moment.
  for (const budget of [{ name: "month" }, { name: "keys", each: "key" }]) {
    const wanted = { unit: "requests", limit: 1000, per: "month", ...budget };
    await admin(proxy, "", wanted);
    await send(1);
    await admin(proxy, "/remove", { name: budget.name });
    await admin(proxy, "", wanted);
    const { items } = (await admin(proxy, `?budget=${budget.name}`)).body as { items: Record<string, number>[] };
    expect(items[0]!.counted_from_ms).toBe(items[0]!.started_at_ms!);
  }
});

test("a budget that somebody wrote into the config in the middle of its period shows no parts that it has not counted", async () => {
  await using proxy = await startProxy();
  const body = JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }] });
  const send = async () => (await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", body })).text();
  await send();
  const budgets = [{ name: "month", unit: "requests", limit: 1000, per: "month" }];
  writeFileSync(join(proxy.home, "config.json"), JSON.stringify({ budgets }));
  await proxy.app.config.reload();
  await send();
  const page = await (await fetch(`${proxy.url}/admin/budgets`)).text();
  expect(page).toContain("of 1,000 requests used");
  expect(page).not.toContain("without a key");
});
