/**
 * Scenario: the guard before the relay: what it expects a request to cost, and what it shows; `fixtures/scenes/budgets.txt` has
 * what it reserves and tells, `fixtures/books/budgets.txt` how budgets are kept.
 */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { type Budget, budgetSchema } from "../../../src/config/budget-schema";
import { openConfig } from "../../../src/config/store";
import { BudgetGuard } from "../../../src/people/budgets/guard";
import { openLedger } from "../../../src/people/budgets/ledger";
import { addStoredBudget } from "../../../src/people/budgets/stored-budgets";
import type { Member } from "../../../src/people/keys/members";
import { credits } from "../../support/amounts";
import { temporaryFolder } from "../../support/temporary-folder";

const folder = temporaryFolder(afterAll);
const now = Date.UTC(2026, 10, 11, 12);

const budgetOf = (given: object = {}): Budget =>
  budgetSchema().parse({ name: "all", unit: "credits", limit: 10, per: "month", ...given });
const subject = { account: "octo", key: "ci", model: "gpt-4.1" };

function newOptions() {
  const name = join(folder, crypto.randomUUID());
  const warn = (sentence: string) => expect.unreachable(sentence);
  const openOwn = () => openLedger(`${name}.sqlite`, { now: () => now, warn });
  return { config: openConfig(`${name}.json`), openLedger: openOwn, now: () => now, warn };
}

async function guardOf(...budgets: object[]): Promise<BudgetGuard> {
  const options = newOptions();
  const guard = new BudgetGuard(options);
  for (const budget of budgets) await addStoredBudget(options.config, budgetOf(budget), guard, now);
  return guard;
}

async function reserved(guard: BudgetGuard, amount: number | null, of: Partial<typeof subject> = {}) {
  const result = await guard.reserve({ ...subject, ...of }, credits(amount));
  if (!result || result instanceof Error) return expect.unreachable("Nothing was reserved.") as never;
  return result;
}

test("what a model's requests really cost corrects what is expected of the next one, within bounds", async () => {
  const guard = await guardOf({ then: "warn" });
  const expectedAfter = async (real: number | null, times: number, estimate = 1) => {
    for (let turn = 0; turn < times; turn += 1) {
      const expected = credits(estimate);
      guard.settle(await reserved(guard, estimate), { model: "gpt-4.1", expected, real: credits(real) });
    }
    return guard.expect("gpt-4.1", credits(1)).amount! / 1e9;
  };
  expect(await expectedAfter(0.5, 1)).toBeCloseTo(0.9);
  expect(await expectedAfter(null, 3)).toBeCloseTo(0.9);
  expect(await expectedAfter(5, 1, 0)).toBeCloseTo(0.9);
  expect(await expectedAfter(0, 40)).toBeCloseTo(0.05);
  expect(await expectedAfter(100, 40)).toBeCloseTo(3);
  expect(guard.expect("another", credits(1))).toEqual(credits(1));
  expect(guard.expect("gpt-4.1", credits(null))).toEqual(credits(null));
  guard.close();
});

test("a member is known by name, one who was removed by none, and the owner is nobody", async () => {
  const anna = { id: "m1", name: "anna" } as Member;
  const members = { find: (id: string) => (id === anna.id ? anna : undefined), hearAll() {}, list: () => [anna] };
  const team = new BudgetGuard({ ...newOptions(), members });
  expect([team.memberOf("m1"), team.memberOf("m2"), team.memberOf(null)]).toEqual([
    { id: "m1", name: "anna" },
    { id: "m2", name: "" },
    null,
  ]);
  team.close();
});

test("nothing is reserved where no budget applies, and an account's budget is an error for this account only", async () => {
  const guard = await guardOf({ scope: { account: "octo" }, unit: "requests", limit: 1 });
  expect(await guard.reserve({ ...subject, account: "work" }, credits(1))).toBeUndefined();
  await reserved(guard, 1);
  expect(await guard.reserve(subject, credits(1))).toBeInstanceOf(Error);
  guard.close();
  const none = await guardOf();
  expect(await none.reserve(subject, credits(1))).toBeUndefined();
  none.close();
});

test("what is shown of a budget is in its unit: used, reserved and without a price", async () => {
  const guard = await guardOf({}, { name: "each", each: "key" });
  await reserved(guard, 4);
  for (const real of [1.5, null])
    guard.settle(await reserved(guard, 1), { model: "gpt-4.1", expected: credits(1), real: credits(real) });
  expect(await guard.overview()).toMatchObject([
    { budget: { name: "all" }, used: 1.5, reserved: 4, unknown: 1, holder: null },
    { budget: { name: "each" }, used: 1.5, reserved: 4, unknown: 1, holder: { name: "ci" } },
  ]);
  guard.settle(await reserved(guard, 1, { key: "other" }), {
    ...{ model: "gpt-4.1", expected: credits(1), real: credits(2) },
  });
  const each = guard.budgets[1]!;
  const page = await guard.holders(each, { limit: 9 });
  expect(page).toMatchObject({
    count: 2,
    states: [{ holder: { name: "other" }, used: 2 }, { holder: { name: "ci" } }],
  });
  expect(await guard.holders(each, { limit: 1, offset: 1 })).toMatchObject({ count: 2, states: [{ used: 1.5 }] });
  expect(guard.emptyState(each)).toMatchObject({ used: 0, reserved: 0, unknown: 0 });
  expect((await guard.overview())[1]).toMatchObject({ holder: { name: "other" } });
  const unused = await guardOf({ each: "key" });
  expect(await unused.overview()).toMatchObject([{ used: 0, holder: null }]);
  unused.close();
  guard.close();
});

test("the holder with the largest share of its own limit comes first, and a limit of nobody changes nothing", async () => {
  const guard = await guardOf({ each: "key", limits: { CI: 2, "nobody/laptop": 1 } });
  const use = async (key: string, amount: number) =>
    guard.settle(await reserved(guard, amount, { key }), {
      ...{ model: "gpt-4.1", expected: credits(amount), real: credits(amount) },
    });
  await use("ci", 1);
  await use("other", 3);
  const { states } = await guard.holders(guard.budgets[0]!, { limit: 9 });
  expect(states).toMatchObject([
    { holder: { name: "ci" }, used: 1, budget: { limit: 2 } },
    { holder: { name: "other" }, used: 3, budget: { limit: 10 } },
  ]);
  guard.close();
});

test("a key is limited as soon as one of several budgets binds it", async () => {
  const guard = await guardOf({}, { name: "mine", scope: { key: "ci" } });
  expect(guard.limits({ name: "ci", member: null })).toBe(true);
  expect(guard.limits({ name: "other", member: null })).toBe(false);
  guard.close();
});

test("a budget that cuts ends exactly the running requests that count for what is used up", async () => {
  const common = { name: "common", unit: "requests", limit: 9 };
  const guard = await guardOf({ unit: "requests", limit: 2, then: "warn", cut: true, each: "key" }, common);
  const ended: string[] = [];
  const run = async (key: string) => {
    const reservation = await guard.reserve({ ...subject, key }, credits(1), () => void ended.push(key));
    return () =>
      guard.settle(reservation as Awaited<ReturnType<typeof reserved>>, {
        ...{ model: "gpt-4.1", expected: credits(1), real: credits(1) },
      });
  };
  const [first, second, , other] = [await run("ci"), await run("ci"), await run("ci"), await run("other")];
  first();
  expect(ended).toEqual([]);
  other();
  expect(ended).toEqual([]);
  second();
  expect(ended).toEqual(["ci"]);
  guard.close();
});
