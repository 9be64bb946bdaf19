/**
 * Pairs: what a budget's state means, whose amount it is, when it ends at this rate, and what a client reads of it, from
 * `fixtures/pairs/budgets/`.
 */
import { type Budget, budgetSchema } from "../../../src/config/budget-schema";
import { parseConfig } from "../../../src/config/schema";
import { ProxyError } from "../../../src/lib/errors";
import { budgetItem, holderName, holdersItem } from "../../../src/people/budgets/budget-list";
import { binds, budgetsOf, matchesScope, type Subject } from "../../../src/people/budgets/budgets";
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
import { changes, testPairs } from "../../support/pairs";

const now = Date.UTC(2026, 10, 11, 12);
const [start, end] = [Date.UTC(2026, 10, 1), Date.UTC(2026, 11, 1)];
const budgetOf = (given: object = {}): Budget =>
  budgetSchema().parse({ name: "all", unit: "requests", limit: 100, per: "month", ...given });
const stateOf = (given: Partial<BudgetState> = {}, budget: object = {}): BudgetState => ({
  ...{ budget: budgetOf(budget), holder: null, used: 0, reserved: 0, unknown: 0, startedAt: start, resetsAt: end },
  ...given,
});
const subjectOf = (given: object = {}): Subject => ({ account: null, key: null, model: "gpt-4.1", ...given });

/** With its times in words. */
const dated = <Value>(value: Value): Value =>
  JSON.parse(
    JSON.stringify(value, (_, member) =>
      typeof member === "number" && member > 1e12 ? new Date(member).toISOString() : member,
    ),
  );

testPairs("budgets", {
  /** A state, its budget, and when it is looked at: what is shown of it, other than of a budget that nobody used. */
  item: (state: object, budget: object = {}, at?: string) =>
    dated(changes(budgetItem(stateOf(), now), budgetItem(stateOf(state, budget), at ? Date.parse(at) : now))),
  /** States of holders, how many there are and which is the first: what is shown of a budget that has them. */
  holders(states: Partial<BudgetState>[], page: { count: number; offset?: number }) {
    const state = stateOf({}, { each: "member" });
    const item = holdersItem(state, { ...page, states: states.map((each) => stateOf(each)) }, now);
    return { ...dated(changes(budgetItem(state, now), item)), names: item.holders!.items.map(holderName) };
  },
  "of-config": (config: object) => budgetsOf(parseConfig(config)),
  /** A budget, and what is known of a request. */
  holder: (budget: object, subject: object) => holderOf(budgetOf(budget), subjectOf(subject)),
  /** A budget, and a member with their keys and accounts: each amount for which their requests may count. */
  entries: (budget: object, person: Parameters<typeof entriesOfMember>[1]) =>
    entriesOfMember([budgetOf(budget)], person, now).map(({ key, budget: { limit } }) => [textOf(key), limit]),
  /** A budget, whose amount it is, and what is stored. */
  state(budget: object, holder: Holder | null, stored?: { used: number; reserved: number; unknown: number }) {
    const { budget: read, ...state } = readState(entryFor(budgetOf(budget), holder, now), stored, now);
    return dated({ ...state, limit: read.limit });
  },
  /** A budget, the name of a key, and of its member. */
  binds: (budget: object, name: string, member: string | null) =>
    binds(budgetOf(budget), { name }, member === null ? null : { name: member }),
  scope: (scope: object, subject: object) => matchesScope(budgetOf({ scope }), subjectOf(subject)),
  /** A state, what a request costs, its budget, and what is known of the request. */
  exceeds(state: object, amount: number | null, budget: object = {}, subject?: object) {
    const asked = subjectOf(subject);
    return {
      exceeds: exceeds(stateOf(state, budget), amount, asked),
      unlimited: isUnlimited(budgetOf(budget), amount, asked),
    };
  },
  /** A kind, and what is stored of a holder, where `m1` is anna. */
  stored: (kind: Holder["kind"], holder: { member: string; item: string }) =>
    holderFrom(kind, holder, (id) => ({ m1: "anna" })[id]),
  /** A kind, and a name in `limits`. */
  named(kind: Holder["kind"], name: string) {
    const found = holderNamed(kind, name, (member) => ({ anna: "m1" })[member]);
    return found && textOf(found);
  },
  /** What has amounts of its own, whom the budget names, and whether an amount is anna's alone. */
  whose(given: object) {
    const budget = budgetOf(given);
    return { kind: holderKindOf(budget), members: namedMembers(budget), ofAnna: isOwnAmount(budget, "anna") };
  },
  limit: (budget: object, holder: Holder | null) => limitOf(budgetOf(budget), holder),
  span: (per: Budget["per"], at: string) => dated(spanOf(per, Date.parse(at))),
  /** A state, its budget, whether amounts are told, and what the request is expected to use. */
  exceeded: (state: object, budget: object = {}, showsAmounts = true, expected?: number | null) =>
    exceededError(stateOf(state, budget), now, { showsAmounts, ...(expected !== undefined && { expected }) }),
  amount: (amount: number, unit: Budget["unit"]) => amountOf(amount, { unit }),
  "of-holder": (holder: Holder) => ofHolder(holder),
  remaining: (...states: { used: number; reserved?: number; name?: string }[]) =>
    remainingOf(states.map(({ name = "all", ...state }) => stateOf(state, { name }))),
  /** What the ledger throws: an error of SQLite with its code, or one of ours with its kind. */
  unable: ({ kind, code, message }: { kind?: "conflict" | "unable"; code?: string; message: string }) =>
    orUnable(() => Promise.reject(kind ? new ProxyError(kind, message) : Object.assign(new Error(message), { code }))),
});
