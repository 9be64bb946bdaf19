/**
 * Rows: what a budget's state means: used up or not, whose amount it is, when it ends at this rate, and what a client
 * reads of it.
 */
import { describe, expect, test } from "bun:test";
import { type Budget, budgetSchema } from "../../../src/config/budget-schema";
import { parseConfig } from "../../../src/config/schema";
import { ProxyError } from "../../../src/lib/errors";
import { dayMs, hourMs } from "../../../src/lib/format";
import { budgetItem, holderName, holdersItem, isExhausted } from "../../../src/people/budgets/budget-list";
import { binds, budgetsOf, matchesScope } from "../../../src/people/budgets/budgets";
import {
  type BudgetState,
  entriesOfMember,
  entryFor,
  exceeds,
  isUnlimited,
  stateOf as readState,
} from "../../../src/people/budgets/entries";
import {
  type Holder,
  holderFrom,
  holderKindOf,
  holderNamed,
  holderOf,
  isOwnAmount,
  limitOf,
  namedMembers,
  textOf,
} from "../../../src/people/budgets/holders";
import { spanOf } from "../../../src/people/budgets/period";
import { amountOf, exceededError, ofHolder, remainingOf } from "../../../src/people/budgets/sentences";
import { orUnable } from "../../../src/people/budgets/unable";

const now = Date.UTC(2026, 10, 11, 12);
const [start, end] = [Date.UTC(2026, 10, 1), Date.UTC(2026, 11, 1)];
const budgetOf = (given: object = {}): Budget =>
  budgetSchema().parse({ name: "all", unit: "requests", limit: 100, per: "month", ...given });
const stateOf = (given: Partial<BudgetState> = {}, budget: object = {}): BudgetState => ({
  ...{ budget: budgetOf(budget), holder: null, used: 0, reserved: 0, unknown: 0, startedAt: start, resetsAt: end },
  ...given,
});
const subject = { account: null, key: null, model: "gpt-4.1" };

test.each([
  [99, 0, false],
  [100, 0, true],
  [60, 40, true],
  [60, 39, false],
])("a budget of 100 of which %p is used and %p reserved is exhausted: %p", (used, reserved, expected) =>
  expect(isExhausted(stateOf({ used, reserved }))).toBe(expected),
);

describe("the time at which a limit is reached at the present rate", () => {
  const forecast = (used: number, given: Partial<BudgetState> = {}, budget: object = {}, at = now) =>
    budgetItem(stateOf({ used, ...given }, budget), at).forecast_ends_at_ms;

  test("is that far away again as what is left, at the rate since the period began", () =>
    expect(forecast(80)).toBe(now + (now - start) / 4));
  test("is counted from when the budget was added, if that is later", () =>
    expect(forecast(50, {}, { since: new Date(now - dayMs).toISOString() })).toBe(now + dayMs));
  test("is shown for a rate of one request too", () =>
    expect(forecast(1, {}, { limit: 2, since: new Date(now - dayMs).toISOString() })).toBe(now + dayMs));
  test.each([
    ["nothing is used", forecast(0)],
    ["the limit is reached already", forecast(100)],
    ["the reset comes first", forecast(10)],
    ["the reset comes at the same moment", forecast(35)],
    ["the period is younger than an hour", forecast(80, {}, {}, start + hourMs - 1)],
  ])("is unknown if %s", (_, at) => expect(at).toBeNull());
  test("is known from the first hour on", () => expect(forecast(80, {}, {}, start + hourMs)).toBeGreaterThan(start));
});

test("an amount is shown by who has it: a name, or a removed member", () => {
  const shown = (holder: Holder) =>
    holdersItem(stateOf(), { count: 1, states: [stateOf({ holder })] }, now).holders!.items[0]!;
  const anna = shown({ kind: "member", member: "m1", item: "", name: "anna" });
  expect(anna).toMatchObject({ name: "anna", member: "m1" });
  expect(holderName(anna)).toBe("anna");
  expect(holderName(shown({ kind: "member", member: "gone", item: "", name: null }))).toBe("a removed member");
  expect(shown({ kind: "key", member: "", item: "ci", name: "ci" })).toMatchObject({ name: "ci", member: null });
});

test("a budget is shown with who has an amount of their own, or without", () => {
  expect(budgetItem(stateOf(), now)).not.toHaveProperty("each");
  expect(budgetItem(stateOf({}, { each: "key" }), now).each).toBe("key");
});

test("the budgets of a config are its own, and those of its keys with the key as their scope", () => {
  const auth = {
    apiKeys: [
      "k-plain-0123456789",
      { name: "free", key: "k-free-0123456789" },
      { name: "ci", key: "k-ci-0123456789", budgets: [{ unit: "requests", limit: 5, per: "day" }] },
    ],
  };
  const budgets = [{ name: "all", unit: "requests", limit: 1, per: "day" }];
  const found = budgetsOf(parseConfig({ auth, budgets }));
  expect(found.map(({ scope, limit }) => [scope, limit])).toEqual([
    [{}, 1],
    [{ key: "ci" }, 5],
  ]);
});

test("a request counts for the amount of its member, key, account or project, and for none that it has not", () => {
  const member = { id: "m1", name: "anna" };
  const whole = { ...subject, member, key: "anna/laptop", account: "Octo", project: "web/shop" };
  const of = (each: string, more: object) => holderOf(budgetOf({ each }), { ...whole, ...more });
  expect(of("member", {})).toEqual({ kind: "member", member: "m1", item: "", name: "anna" });
  expect(of("member", { member: null })).toBeUndefined();
  expect(of("key", {})).toEqual({ kind: "key", member: "m1", item: "laptop", name: "anna/laptop" });
  expect(of("key", { member: null, key: "ci" })).toEqual({ kind: "key", member: "", item: "ci", name: "ci" });
  expect(of("key", { key: null })).toBeUndefined();
  expect(of("account", {})).toEqual({ kind: "account", member: "", item: "github.com/octo", name: "Octo" });
  expect(of("account", { accountKey: "company.ghe.com/octo" })?.item).toBe("company.ghe.com/octo");
  expect(of("account", { account: null })).toBeUndefined();
  expect(of("project", {})).toEqual({ kind: "project", member: "", item: "web/shop", name: "web/shop" });
  expect(of("project", { project: null })).toBeUndefined();
  expect(holderOf(budgetOf(), whole)).toBeNull();
});

test("what a member's requests may count for is each amount of their keys and accounts once", () => {
  const person = {
    member: { id: "m1", name: "anna" },
    keys: ["anna/laptop", "anna/ci"],
    accounts: [{ id: "octo", key: "company.ghe.com/octo" }],
  };
  const ids = (budget: object) => entriesOfMember([budgetOf(budget)], person, now).map(({ key }) => textOf(key));
  expect(ids({})).toEqual([""]);
  expect(ids({ each: "member", scope: { model: "gpt-*", project: "web/*" } })).toEqual(["member/m1"]);
  expect(ids({ each: "key" })).toEqual(["key/m1/laptop", "key/m1/ci"]);
  expect(ids({ each: "account" })).toEqual(["account/company.ghe.com/octo"]);
  expect(ids({ scope: { account: "work" } })).toEqual([]);
  expect(ids({ scope: { member: "ben" } })).toEqual([]);
});

test("a state has the start and end of its period, and the limit of its holder", () => {
  const read = (budget: object) => readState(entryFor(budgetOf(budget), null, now), undefined, now);
  expect(read({})).toMatchObject({ used: 0, reserved: 0, unknown: 0, startedAt: start, resetsAt: end });
  const limits = { anna: 3 };
  const anna: Holder = { kind: "member", member: "m1", item: "", name: "anna" };
  expect(entryFor(budgetOf({ each: "member", limits }), anna, now).budget.limit).toBe(3);
  expect(entryFor(budgetOf({ each: "member", limits }), { ...anna, name: "ben" }, now).budget.limit).toBe(100);
});

test("a page of holders names the next one only while there are more", () => {
  const of = (id: string) => stateOf({ holder: { kind: "member", member: id, item: "", name: id }, used: 100 });
  const page = (count: number, offset: number) =>
    holdersItem(stateOf({}, { each: "member" }), { count, states: [of("a"), of("b")], offset }, now);
  expect(page(5, 0).holders!.next_offset).toBe(2);
  expect(page(5, 3).holders!.next_offset).toBeNull();
  expect(page(6, 3).holders!.next_offset).toBe(5);
  const last = { count: 2, states: [of("b")], offset: 0 };
  expect(holdersItem(stateOf({}, { each: "member" }), last, now).holders!.next_offset).toBe(1);
  expect(holdersItem(stateOf({}, { each: "member" }), { count: 2, states: [of("a")] }, now).holders!.next_offset).toBe(
    1,
  );
  expect(page(2, 0)).toMatchObject({ exhausted: true, used: null, holders: { items: [{ name: "a" }, { name: "b" }] } });
  expect(holdersItem(stateOf({}, { each: "member" }), { count: 3, states: [] }, now)).toMatchObject({
    exhausted: false,
    holders: { next_offset: null },
  });
});

describe("whether a budget limits a key", () => {
  const anna = { name: "anna" };
  test.each<[string, object, string, { name: string } | null, boolean]>([
    ["that only warns", { scope: { key: "ci" }, then: "warn" }, "ci", null, false],
    ["of everything", {}, "ci", null, false],
    ["of this key", { scope: { key: "ci" } }, "ci", null, true],
    ["of another key", { scope: { key: "other" } }, "ci", null, false],
    ["with an amount for each key", { each: "key" }, "ci", null, true],
    ["with an amount for each key that only warns", { each: "key", then: "warn" }, "ci", null, false],
    ["of its member", { scope: { member: "anna" } }, "anna/laptop", anna, true],
    ["of another member", { scope: { member: "ben" } }, "anna/laptop", anna, false],
    ["with an amount for each member", { each: "member" }, "anna/laptop", anna, true],
    ["with an amount for each member, of the owner's key", { each: "member" }, "ci", null, false],
    ["with an amount for each account", { each: "account" }, "ci", null, false],
  ])("a budget %s: %#", (_, budget, name, member, expected) =>
    expect(binds(budgetOf(budget), { name }, member)).toBe(expected),
  );
});

test("a scope holds only for a request of which everything that it names is known and matches", () => {
  const matches = (scope: object, more: object) => matchesScope(budgetOf({ scope }), { ...subject, ...more });
  expect(matches({}, {})).toBe(true);
  expect(matches({ model: "gpt-*" }, {})).toBe(true);
  expect(matches({ model: "claude-*" }, {})).toBe(false);
  expect(matches({ key: "*" }, {})).toBe(false);
  expect(matches({ key: "*" }, { key: "ci" })).toBe(true);
  expect(matches({ key: "CI" }, { key: "ci" })).toBe(true);
  expect(matches({ key: "ci" }, { key: "ce" })).toBe(false);
  expect(matches({ account: "*" }, { account: null })).toBe(false);
  expect(matches({ account: "octo", model: "gpt*" }, { account: "octo" })).toBe(true);
  expect(matches({ project: "web/*" }, { project: "web/shop" })).toBe(true);
  expect(matches({ member: "anna" }, { member: { id: "m1", name: "anna" } })).toBe(true);
  expect(matches({ member: "anna" }, { member: null })).toBe(false);
  expect(matches({ model: "gpt-*", project: "web/*" }, { project: "shop" })).toBe(false);
});

describe("a request at the limit", () => {
  const at = (used: number, reserved = 0, budget: object = {}) => stateOf({ used, reserved }, budget);
  test.each<[string, BudgetState, number | null, boolean]>([
    ["fits exactly", at(60, 39), 1, false],
    ["is one too many", at(60, 40), 1, true],
    ["costs nothing", at(100), 0, false],
    ["costs nothing yet more than the limit is used", at(150), 0, false],
    ["has an unknown price while something is left", at(99, 0), null, false],
    ["has an unknown price when nothing is left", at(60, 40), null, true],
    ["is only warned of", at(100, 0, { then: "warn" }), 5, false],
  ])("that %s: %#", (_, state, amount, expected) => expect(exceeds(state, amount, subject)).toBe(expected));

  test("a request at the limit is let through where fallbacks serve only if a provider serves it at an unknown price", () => {
    const fallback = budgetOf({ then: "fallback" });
    const provided = { ...subject, isProvided: true };
    expect(isUnlimited(fallback, null, provided)).toBe(true);
    expect(isUnlimited(fallback, 1, provided)).toBe(false);
    expect(isUnlimited(fallback, null, subject)).toBe(false);
    expect(isUnlimited(budgetOf({ then: "stop" }), null, provided)).toBe(false);
  });
});

describe("whose amount it is", () => {
  const names: Record<string, string> = { m1: "anna" };
  test.each<[kind: Holder["kind"], member: string, item: string, name: string | null]>([
    ["member", "m1", "", "anna"],
    ["member", "gone", "", null],
    ["key", "", "ci", "ci"],
    ["key", "m1", "laptop", "anna/laptop"],
    ["key", "gone", "laptop", null],
    ["account", "", "github.com/octo", "octo"],
    ["project", "", "web/shop", "web/shop"],
  ])("a %s of the member %p called %p is named %p", (kind, member, item, name) => {
    const holder = holderFrom(kind, { member, item }, (each) => names[each]);
    expect(holder).toEqual({ kind, member, item, name });
  });

  test.each<[Parameters<typeof holderNamed>[0], string, string | undefined]>([
    ["account", "octo", "account/github.com/octo"],
    ["account", "company.ghe.com/octo", "account/company.ghe.com/octo"],
    ["project", "web/shop", "project/web/shop"],
    ["key", "ci", "key/ci"],
    ["key", "anna/laptop", "key/m1/laptop"],
    ["key", "nobody/laptop", undefined],
    ["member", "anna", "member/m1"],
    ["member", "nobody", undefined],
  ])("a limit for the %s %s is that of %p", (kind, name, expected) => {
    const found = holderNamed(kind, name, (member) => (member === "anna" ? "m1" : undefined));
    expect(found && textOf(found)).toBe(expected);
  });

  test("a member who is named in full has an amount of their own, one of several does not", () => {
    expect(holderKindOf(budgetOf({ scope: { member: "anna" } }))).toBe("member");
    expect(holderKindOf(budgetOf({ scope: { member: "an*" } }))).toBeNull();
    expect(holderKindOf(budgetOf({ each: "key" }))).toBe("key");
    expect(holderKindOf(budgetOf())).toBeNull();
    expect(isOwnAmount(budgetOf({ scope: { key: "Anna/*" } }), "anna")).toBe(true);
    expect(isOwnAmount(budgetOf({ scope: { key: "annabel/*" } }), "anna")).toBe(false);
    expect(isOwnAmount(budgetOf(), "anna")).toBe(false);
    expect(isOwnAmount(budgetOf({ each: "member" }), "anna")).toBe(true);
    expect(isOwnAmount(budgetOf({ each: "project" }), "anna")).toBe(false);
  });

  test("a holder's own limit counts, by its name in any case, else the common one", () => {
    const budget = { limit: 10, limits: { Anna: 3, "company.ghe.com/octo": 4 } };
    const anna: Holder = { kind: "member", member: "m1", item: "", name: "anna" };
    expect(limitOf(budget, anna)).toBe(3);
    expect(limitOf(budget, { ...anna, name: "ben" })).toBe(10);
    expect(limitOf(budget, { kind: "account", member: "", item: "company.ghe.com/octo", name: "octo" })).toBe(4);
    expect(limitOf(budget, null)).toBe(10);
    expect(limitOf({ limit: 10 }, anna)).toBe(10);
  });

  test("the members that a budget names in full are those of its scope and of its limits", () => {
    const named = (given: object) => namedMembers(budgetOf(given));
    expect(named({ scope: { member: "anna" } })).toEqual(["anna"]);
    expect(named({ scope: { member: "an*" } })).toEqual([]);
    expect(named({ each: "member", limits: { anna: 1, ben: 2 } })).toEqual(["anna", "ben"]);
    expect(named({ each: "key", limits: { ci: 1, "anna/laptop": 2, "anna/ci": 3 } })).toEqual(["anna"]);
    expect(named({ each: "account", limits: { octo: 1 } })).toEqual([]);
  });
});

test.each<[Budget["per"], string, string, string]>([
  ["day", "2026-11-11T23:59:59.999Z", "2026-11-11", "2026-11-12"],
  ["day", "2026-03-29T01:30:00Z", "2026-03-29", "2026-03-30"],
  ["day", "2026-10-25T00:59:59.999Z", "2026-10-25", "2026-10-26"],
  ["month", "2026-12-31T23:59:59.999Z", "2026-12-01", "2027-01-01"],
  ["month", "2028-02-29T12:00:00Z", "2028-02-01", "2028-03-01"],
])("the %s of %s begins on %s and ends on %p", (per, at, from, until) =>
  expect(spanOf(per, Date.parse(at))).toEqual({ start: Date.parse(from), end: Date.parse(until) }),
);

describe("what a client reads", () => {
  const read = (given: Partial<BudgetState> = {}, budget: object = {}, showsAmounts = true, expected?: number | null) =>
    exceededError(stateOf(given, budget), now, { showsAmounts, expected });

  test("is the amount, what is reserved, and when it is free again", () => {
    expect(read({ used: 99, reserved: 1 }).message).toContain(
      "The budget `all` is used up: 99 of 100 requests used and 1 request reserved by running requests, free again at ",
    );
    expect(read({ used: 100 }).message).toContain("100 of 100 requests used, free again at ");
    expect(read({ used: 100 }).message).toEndWith(" The owner can raise it on the Budgets page or in the config.");
  });

  test("says what the request needs and what is left, where something is", () => {
    expect(read({ used: 90 }, {}, true, 11.5).message).toStartWith(
      "The budget `all` has too little left: this request needs about 11.5 requests, 10 are left, free again at ",
    );
    expect(read({ used: 90, reserved: 9 }, {}, true, 2).message).toContain(
      "needs about 2 requests, 1 is left and 9 requests reserved by running requests, free again at ",
    );
    expect(read({ used: 100 }, {}, true, 2).message).toContain("is used up: 100 of 100 requests used, free");
    expect(read({ used: 101 }, {}, true, null).message).toContain("is used up: 101 of 100 requests used, free");
    expect(read({ used: 90 }, {}, false, 11).message).toStartWith(
      "The budget `all`, which you share with others, has too little left, free again at ",
    );
  });

  test("has no amount that looks like a status, and none that others share", () => {
    expect(read({ used: 500 }, { limit: 429 }).message).toStartWith("The budget `all` is used up, free again at ");
    expect(read({ used: 500 }, { limit: 500 }, false).message).toStartWith(
      "The budget `all`, which you share with others, is used up, free again at ",
    );
    expect(read({ used: 100 }, {}, false).message).not.toContain("of 100");
    const holder: Holder = { kind: "key", member: "", item: "503", name: "503" };
    expect(read({ used: 100, holder }).message).toStartWith("The budget `all` is used up: 100");
    expect(read({ used: 100, holder: { ...holder, name: "ci" } }).message).toStartWith(
      "The budget `all` of the key ci is used up",
    );
  });

  test("says when to try again: at the reset, and never at once", () => {
    const retryAfter = (given: Partial<BudgetState>) => new Headers(read(given).details.headers).get("retry-after");
    expect(retryAfter({ resetsAt: now + 1_500 })).toBe("2");
    expect(retryAfter({ resetsAt: now + 3_600_000 })).toBe("3600");
    expect(retryAfter({ resetsAt: now })).toBe("1");
    expect(new Headers(read().details.headers).get("x-should-retry")).toBe("false");
  });

  test.each([
    ["stop", false],
    ["fallback", true],
  ])("a used-up budget with `then: %s` lets another model serve: %p", (then, mayFallBack) =>
    expect(read({}, { then }).details).toMatchObject({ mayFallBack }),
  );

  test("counts one in the singular and leaves nothing below zero", () => {
    expect(amountOf(1, { unit: "credits" })).toBe("1 credit");
    expect(amountOf(1, { unit: "premium" })).toBe("1 premium request");
    expect(amountOf(2, { unit: "premium" })).toBe("2 premium requests");
    expect(ofHolder({ kind: "member", name: "anna" })).toBe(" of anna");
    expect(ofHolder({ kind: "member", name: null })).toBe("");
    const left = [stateOf({ used: 60, reserved: 30.12345 }), stateOf({ used: 101 }, { name: "zu viel" })];
    expect(remainingOf(left)).toBe("all=9.877 requests, zu%20viel=0 requests");
  });

  test("says to free the disk only where it is full, and to remove the budgets otherwise", async () => {
    const said = async (thrown: unknown) => {
      const error = (await Promise.try(() => orUnable(() => Promise.reject(thrown))).catch(
        (each) => each,
      )) as ProxyError;
      return [error.kind, error.message];
    };
    const broken = (code: string) => Object.assign(new Error("the disk says no."), { code });
    for (const code of ["SQLITE_FULL", "SQLITE_IOERR_WRITE"])
      expect(await said(broken(code))).toEqual([
        "unable",
        "The budgets cannot be checked, so no request is sent: the disk says no. Free the disk.",
      ]);
    for (const thrown of [broken("SQLITE_CORRUPT"), new ProxyError("conflict", "the disk says no.")])
      expect((await said(thrown))[1]).toEndWith("says no. Remove the budgets from the config to go on without them.");
    const away = new ProxyError("unable", "The database is away.");
    expect(await said(away)).toEqual(["unable", "The database is away."]);
  });
});
