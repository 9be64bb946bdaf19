/** Fills the demo with its past, and with what follows from it: bills, keys, budgets, an account that cools down. */
import { existsSync } from "node:fs";
import type { Entry } from "../../books/history/entry";
import type { Stores } from "../../books/stores";
import type { Budget } from "../../config/budget-schema";
import type { Environment } from "../../config/environment";
import { minuteMs } from "../../lib/format";
import type { App } from "../../parts/app";
import { madeUpKey } from "../../people/keys/client-keys";
import { type PricesOf, pastOf, type Tool, tools } from "./demo-past";

/** The rows of the past: of the owner's tools where nothing is there yet, and in any case of members who are new. */
type MadeUp = (isNew: boolean) => Entry[];

/**
 * @param now Unix ms. The config and the history of a new demo are given the same rows.
 * @param ofMembers The tools of members who are new.
 */
export function madeUpPast(now: number, pricesOf: PricesOf, ofMembers: readonly Tool[] = []): MadeUp {
  let whole: Entry[] | undefined;
  return (isNew) => {
    if (!isNew) return pastOf(now, pricesOf, [...ofMembers]);
    whole ??= pastOf(now, pricesOf, [...tools, ...ofMembers]);
    return whole;
  };
}

/**
 * Fills the history, unless it has something: whoever reads now finds the past.
 * @returns The rows that were added.
 */
export async function givePast({ history }: App, madeUp: MadeUp): Promise<Entry[]> {
  const rows = madeUp((await history.count()) === 0);
  for (const row of rows) history.add(row);
  await history.flush();
  return rows;
}

export type Bill = (charge: { login: string; at: number; model: string; credits: number }) => void;

/**
 * What follows from the past: GitHub has billed what the history has, an account cools down, four fifths of a budget are used, and
 * the member who used most has no more.
 * @param rows Those that `givePast` added.
 * @param bill Lets the simulated GitHub charge the past.
 */
export async function followPast(app: App, rows: readonly Entry[], bill: Bill): Promise<void> {
  await billPast(app, bill);
  if (rows.length === 0) return;
  const limited = app.accounts.find(({ key }) => key.endsWith("/plus-demo"));
  const until = app.now() + 20 * minuteMs;
  limited?.setState({ name: "cooling", reason: "Too many requests; made up for the demo.", until });
  for (const { member, amount } of usedIn(monthOf(app.now()), rows)) {
    const [expected, real] = [0, amount].map((each) => ({ unit: "credits", amount: each }) as const);
    const subject = { account: null, session: null, key: null, model: "", client: null };
    const reservation = await app.budgets.reserve({ ...subject, member: app.budgets.memberOf(member) }, expected!);
    if (reservation && !(reservation instanceof Error))
      app.budgets.settle(reservation, { model: "", expected: expected!, real: real! });
  }
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

/** Who has used how much, in billionths of a credit; `null` is the owner. */
interface Used {
  member: string | null;
  amount: number;
}

/** Unix ms: when the month began, in UTC. */
function monthOf(now: number): number {
  const today = new Date(now);
  return Date.UTC(today.getUTCFullYear(), today.getUTCMonth());
}

const usedIn = (month: number, rows: readonly Entry[]): Used[] =>
  [
    ...Map.groupBy(
      rows.filter(({ started_at_ms }) => started_at_ms >= month),
      ({ member }) => member,
    ),
  ].map(([member, own]) => ({ member, amount: own.reduce((sum, { cost }) => sum + (cost ?? 0), 0) }));

/**
 * Writes the config of a new demo: the keys that the past names, and budgets. It comes before the server, for which it is no
 * change.
 */
export async function giveKeysAndBudgets(
  { config }: Pick<Stores, "config">,
  { configFile, clientKey }: Pick<Environment, "configFile" | "clientKey">,
  now: number,
  madeUp: MadeUp,
): Promise<void> {
  if (existsSync(configFile)) return;
  const rows = madeUp(true);
  const month = monthOf(now);
  const keys = [...new Set(rows.flatMap(({ key_name, member }) => (member === null && key_name) || []))].map(madeUpKey);
  await config.change({
    ...(clientKey === undefined && { auth: { apiKeys: keys } }),
    budgets: budgetsFor(usedIn(month, rows), new Date(month).toISOString()),
  });
}

function budgetsFor(used: readonly Used[], since: string): Budget[] {
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
