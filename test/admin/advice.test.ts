/** Scenario: what one change would have saved: planted waste is named with its sum, and nothing where it is little. */

import { Database } from "bun:sqlite";
import { afterAll, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import type { Advice } from "../../src/admin/api/advice";
import type { Entry } from "../../src/books/history/history";
import { type Portion, packed } from "../../src/books/history/portions";
import { demoAccounts, quotas } from "../../src/demo/accounts";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { entry } from "../support/history-rows";
import { startProxy } from "../support/proxy";
import { testWritten } from "../support/written";

const [account] = demoAccounts();
const proxy = await startProxy({
  demo: { accounts: [{ ...account!, quota: quotas.credits() }], generation: "C" },
  config: { routes: { "subagent:Plan": exampleModels.haiku } },
});
afterAll(() => proxy[Symbol.asyncDispose]());
const credits = (amount: number) => amount * 1e9;
beforeEach(empty);
function empty(): void {
  proxy.app.history.flush();
  using file = new Database(join(proxy.home, "admin.sqlite"));
  for (const table of ["requests", "portions"]) file.run(`DELETE FROM ${table}`);
}

const portion = (kind: Portion["kind"], tool: string | null, cost: number): Portion => ({
  ...{ kind, tool, count: 1, tokens: 1_000, cached: 0, grown: null },
  cost: credits(cost),
});
const add = ({ portions = [], ...row }: Omit<Partial<Entry>, "portions"> & { portions?: Portion[] }) =>
  proxy.app.history.add(
    entry({
      started_at_ms: Date.now() - 3_600_000,
      upstream_model: exampleModels.claude,
      cost: credits(1_000),
      portions: packed(portions),
      ...row,
    }),
  );
const report = async () =>
  (await (await fetch(`${proxy.url}/api/admin/advice`)).json()) as { items: Advice[]; routes: object[] };
const firstPage = async () => (await fetch(`${proxy.url}/admin`)).text();
const advice = async () =>
  (await report()).items.map(({ about, saves_nano_credits, at_most, says }) => ({
    ...{ about, saves: saves_nano_credits / 1e9, at_most, says },
  }));

test("what a route saved is unknown where tokens are known of requests whose cost is not", async () => {
  const routed = { route: "subagent:Plan", client_model: exampleModels.claude, upstream_model: exampleModels.haiku };
  const tokens = { input_tokens: 1_000_000, output_tokens: 0, cached_tokens: 0, cache_write_tokens: 0 };
  const line = { route: "subagent:Plan", model: exampleModels.haiku };
  const input = (await proxy.app.catalogue.models()).find(({ id }) => id === exampleModels.claude)!.price.tokens!.input;
  add({ ...routed, ...tokens, cost: credits(10) });
  // Neither is known of what failed.
  add({ ...routed, input_tokens: null, output_tokens: null, cost: null });
  const saved_nano_credits = input * 1e9 - credits(10);
  expect((await report()).routes).toEqual([{ ...line, request_count: 2, saved_nano_credits, unknown_saving_count: 1 }]);
  expect(await firstPage()).toContain(", unknown for 1 of them");
  add({ ...routed, ...tokens, cost: null });
  expect((await report()).routes).toEqual([
    { ...line, request_count: 3, saved_nano_credits: null, unknown_saving_count: 3 },
  ]);
});

test("a server whose tools were never called is named, one that was called is not", async () => {
  add({
    portions: [portion("tools", "mcp__github", 150), portion("tools", "mcp__docs", 400), portion("tools", "Bash", 300)],
  });
  add({ portions: [portion("tools", "mcp__github", 150), portion("calls", "mcp__docs", 1)] });
  expect(await advice()).toEqual([
    {
      about: "unused_tools",
      saves: 300,
      at_most: false,
      says: "The tools of `github` were sent with each request and never called: about 300 credits (15%).",
    },
  ]);
  expect(await firstPage()).toContain(
    "github</code> were sent with each request and never called: about 300 credits (15%)",
  );
});

test("of servers that were never called four are named, and none is counted beside them", async () => {
  for (const name of "abcd") add({ portions: [portion("tools", `mcp__${name}`, 300)] });
  expect((await advice())[0]!.says).toStartWith("The tools of `a`, `b`, `c`, `d` were sent with each request");
});

test("subagents are priced on the vendor's cheaper model by their own tokens, long prompts at its rate for these", async () => {
  const tokens = { cached_tokens: 0, cache_write_tokens: 0, output_tokens: 20_000 };
  const subagents = { ...tokens, kind: "subagent", agent_type: "Explore", cost: credits(150) } as const;
  const { tokens: usual, long } = (await proxy.app.catalogue.models()).find(
    ({ id }) => id === exampleModels.haiku,
  )!.price;
  // Of prompts that are short in the mean, some may be long.
  for (const [input_tokens, price, at_most] of [
    [long!.above, usual!, true],
    [long!.above + 1, long!, false],
  ] as const) {
    for (let at = 0; at < 3; at++) add({ ...subagents, input_tokens });
    // It has a route already: from before, or its model cannot be used.
    add({ ...subagents, agent_type: "Plan", input_tokens });
    // What failed had no prompt.
    add({ ...subagents, input_tokens: null, output_tokens: null, cost: 0 });
    const cheaper = (3 * (input_tokens * price.input + 20_000 * price.output)) / usual!.per;
    const [found, ...others] = await advice();
    expect(others).toEqual([]);
    expect(found).toMatchObject({ about: "subagents", at_most, saves: expect.closeTo(450 - cheaper, 6) });
    expect(found!.says).toContain(`on ${exampleModels.haiku} the same tokens`);
    empty();
  }
});

testWritten("admin/advice.txt", [
  [
    "every advice: what was found, what to change, and what it would have saved",
    async () => {
      add({ kind: "check", cost: credits(400) });
      add({ portions: [portion("surcharge", null, 300), portion("tools", "mcp__docs", 390)], cost: credits(600) });
      add({ cache_miss: "no_marks", cache_lost_cost: credits(200), client_name: "my-script/1" });
      add({ cache_miss: "expired", cache_lost_cost: credits(250) });
      for (const agent_type of ["Explore", null])
        add({ kind: "subagent", agent_type, input_tokens: 1_000, output_tokens: 0, cost: credits(350) });
      return JSON.stringify((await report()).items, null, 1);
    },
  ],
]);

test("an hour in the cache is advised where it saves more than the dearer writing costs", async () => {
  const model = (await proxy.app.catalogue.models()).find(({ id }) => id === exampleModels.claude)!;
  const { cacheWrite, cacheWriteHour, per } = model.price.tokens!;
  const dearer = (1_000_000 * (cacheWriteHour! - cacheWrite!)) / per;
  add({ cache_miss: "expired", cache_lost_cost: credits(dearer + 300), cache_write_tokens: 1_000_000 });
  expect((await advice()).map(({ about, saves }) => [about, Math.round(saves)])).toEqual([["hour_cache", 300]]);
  add({ cache_write_tokens: 10_000_000 });
  expect(await advice()).toEqual([]);
});

test("what was advised and then changed is said with what it saved, and advised no more", async () => {
  const ago = (days: number) => Date.now() - days * 86_400_000;
  // Of 2,000 credits 800 could have been saved: two for each three of the rest.
  add({ started_at_ms: ago(10), portions: [portion("tools", "mcp__docs", 500)] });
  add({ started_at_ms: ago(10), portions: [portion("tools", "mcp__docs", 300)] });
  add({ started_at_ms: ago(3), cost: credits(620), portions: [portion("tools", "mcp__docs", 20)] });
  expect(await report()).toMatchObject({
    items: [],
    followed: [{ about: "unused_tools", saved_nano_credits: credits(380) }],
  });
  expect(await (await fetch(`${proxy.url}/admin`)).text()).toContain("The change saved about 380 credits.");
  // A call of the server does not make its tools cheaper.
  add({ cost: credits(1_000), portions: [portion("tools", "mcp__docs", 500), portion("calls", "mcp__docs", 1)] });
  expect(await report()).toMatchObject({ items: [], followed: [] });
});

test("what was all that was spent has no share of a rest, so nothing is said of what it saved", async () => {
  add({ started_at_ms: Date.now() - 10 * 86_400_000, kind: "check", cost: credits(500) });
  add({ cost: credits(900) });
  expect(await report()).toMatchObject({ followed: [] });
});

test("nothing is said of what is worth less than a dollar, or less than a twentieth", async () => {
  add({ cost: credits(80), kind: "check" });
  expect(await advice()).toEqual([]);
  add({ cost: credits(30), kind: "check" });
  expect((await advice()).length).toBe(1);
  add({ cost: credits(5_000) });
  expect(await advice()).toEqual([]);
  expect(await firstPage()).not.toContain("What would have cost less");
});
