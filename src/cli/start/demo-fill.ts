/** Fills the demo with its past, and with what follows from it: bills, keys, budgets, an account that cools down. */

import type { Entry } from "../../books/history/entry";
import type { Budget } from "../../config/budget-schema";
import { repeatChange } from "../../config/repeat-change";
import { minuteMs } from "../../lib/format";
import type { App } from "../../parts/app";
import { madeUpKey } from "../../people/keys/client-keys";
import { type PricesOf, pastOf, type Tool, tools } from "./demo-past";

/**
 * Fills the history, unless it has something: whoever reads now finds the past.
 * @param ofMembers Tools of members who are new, whose past comes in any case.
 * @returns The rows that were added.
 */
export async function givePast(app: App, pricesOf: PricesOf, ofMembers: readonly Tool[] = []): Promise<Entry[]> {
  const isNew = (await app.history.count()) === 0;
  const rows = pastOf(app.now(), pricesOf, [...(isNew ? tools : []), ...ofMembers]);
  for (const row of rows) app.history.add(row);
  await app.history.flush();
  return rows;
}

export type Bill = (charge: { login: string; at: number; model: string; credits: number }) => void;

/**
 * What follows from the past: GitHub has billed what the history has, an account cools down, the keys that it names are there,
 * four fifths of a budget are used, and the member who used most has no more.
 * @param rows Those that `givePast` added.
 * @param bill Lets the simulated GitHub charge the past.
 */
export async function followPast(app: App, rows: readonly Entry[], bill: Bill): Promise<void> {
  await billPast(app, bill);
  if (rows.length === 0) return;
  const limited = app.accounts.find(({ key }) => key.endsWith("/plus-demo"));
  const until = app.now() + 20 * minuteMs;
  limited?.setState({ name: "cooling", reason: "Too many requests; made up for the demo.", until });
  await giveKeysAndBudgets(app, rows);
}

/** GitHub's report knows what the history does: the simulated one forgets when it stops. */
async function billPast({ allAccounts, history }: App, bill: Bill): Promise<void> {
  for (const { id: login, key: account_key } of allAccounts) {
    const { groups } = await history.statistics({ account_key }, ["hour", "upstream_model"]);
    for (const { key, cost } of groups)
      if (cost.credits)
        bill({ login, at: Date.parse(key.hour!), model: key.upstream_model!, credits: cost.credits / 1e9 });
  }
}

/** Where there are none: what somebody sets in the first moment stays. */
async function giveKeysAndBudgets({ budgets, clientKeys, config, now }: App, rows: readonly Entry[]): Promise<void> {
  const today = new Date(now());
  const month = Date.UTC(today.getUTCFullYear(), today.getUTCMonth());
  const recent = Map.groupBy(
    rows.filter(({ started_at_ms }) => started_at_ms >= month),
    ({ member }) => member,
  );
  const used = [...recent].map(([member, own]) => ({
    member,
    amount: own.reduce((sum, { cost }) => sum + (cost ?? 0), 0),
  }));
  const keys = [...new Set(rows.flatMap(({ key_name, member }) => (member === null && key_name) || []))].map(madeUpKey);
  const added = budgetsFor(used, new Date(month).toISOString());
  let isBudgeted = false;
  await repeatChange(config, ({ current }) => {
    isBudgeted = current.budgets.length === 0 && added.length > 0;
    return {
      ...(clientKeys.length === 0 && current.auth.apiKeys.length === 0 && { auth: { apiKeys: keys } }),
      ...(isBudgeted && { budgets: added }),
    };
  });
  if (!isBudgeted) return;
  for (const { member, amount } of used) {
    const [expected, real] = [0, amount].map((each) => ({ unit: "credits", amount: each }) as const);
    const subject = { account: null, session: null, key: null, model: "", client: null };
    const reservation = await budgets.reserve({ ...subject, member: budgets.memberOf(member) }, expected!);
    if (reservation && !(reservation instanceof Error))
      budgets.settle(reservation, { model: "", expected: expected!, real: real! });
  }
}

/** @param used What each has used in this month, in billionths of a credit; `null` is the owner. */
function budgetsFor(used: readonly { member: string | null; amount: number }[], since: string): Budget[] {
  const all = used.reduce((sum, { amount }) => sum + amount, 0);
  const most = Math.max(0, ...used.map(({ member, amount }) => (member === null ? 0 : amount)));
  const common = { unit: "credits" as const, per: "month" as const, warn: [0.5, 0.8], cut: false, since };
  const limitOf = (amount: number, share: number) => Math.max(1, Math.round(amount / 1e9 / share));
  return [
    ...(all > 0 ? [{ name: "Everything", scope: {}, limit: limitOf(all, 0.8), then: "warn" as const, ...common }] : []),
    ...(most > 0
      ? [
          {
            name: "Members",
            scope: {},
            each: "member" as const,
            limit: limitOf(most, 1.04),
            then: "stop" as const,
            ...common,
          },
        ]
      : []),
  ];
}
