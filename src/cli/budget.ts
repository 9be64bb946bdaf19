/** `dragoman budget`, `budget add` and `rm`: what is used of each budget, and changes of the list. */

import type { Stores } from "../books/stores";
import { type Budget, budgetSchema } from "../config/budget-schema";
import type { Environment } from "../config/environment";
import type { ConfigStore } from "../config/store";
import { percent, plural, significant } from "../lib/format";
import { type BudgetItem, budgetListSchema, type HolderItem, holderName } from "../people/budgets/budget-list";
import { BudgetGuard } from "../people/budgets/guard";
import { amountOf, usedInWords } from "../people/budgets/sentences";
import { addStoredBudget, removeStoredBudget } from "../people/budgets/stored-budgets";
import { resetCell } from "./format-usage";
import { table } from "./layout";
import { ask, besideDemo, demoNotice, readAs, requireServer, send, serverOf } from "./running-server";
import { mayRemove, print, printJson, say } from "./terminal";
import { readOptions, UsageError } from "./usage-error";
import { withConfig } from "./with-stores";

interface BudgetOptions {
  environment: Environment;
  /** The one budget to show, with those that have an amount of their own. */
  name?: string | undefined;
  json: boolean;
}

export async function budget({ environment, name, json }: BudgetOptions): Promise<number> {
  const server = requireServer(environment);
  if (server.demo) say(demoNotice, "These are its budgets; `budget add` and `budget rm` change your real config.");
  const query = name === undefined ? { limit: "1" } : { budget: name, limit: "200" };
  const answer = await ask(server, "/api/admin/budgets", { query });
  const { items } = readAs(budgetListSchema(), answer, server);
  if (json) printJson(answer);
  else if (items.length === 0)
    say(
      name === undefined
        ? "There are no budgets. `dragoman budget add NAME --limit NUMBER` adds one."
        : `There is no budget ${name}.`,
    );
  else print(...budgetLines(items, Date.now()), ...(name === undefined ? [] : items.flatMap(holderLines)));
  return items.length === 0 && name !== undefined ? 1 : 0;
}

/** The options as they were given. */
interface AddOptions
  extends Record<"limit" | "unit" | "per" | "then" | "each" | "limitOf" | BudgetScope, string | undefined> {
  environment: Environment;
  name: string;
}

const scopeNames = ["member", "account", "key", "model", "project"] as const;
type BudgetScope = (typeof scopeNames)[number];

async function addOffline(config: ConfigStore, wanted: Budget, stores: Stores): Promise<void> {
  const shared = { now: Date.now, warn: say };
  const guard = new BudgetGuard({ config, openLedger: () => stores.openLedger(shared), ...shared });
  try {
    await addStoredBudget(config, wanted, guard, Date.now());
  } finally {
    guard.close();
  }
}

/** Through the running server, or in the stored config if none is running. */
export async function budgetAdd(options: AddOptions): Promise<number> {
  const { environment, name } = options;
  const wanted = readBudget(options);
  const server = serverOf(environment);
  say(...besideDemo(environment, "this changes your real config"));
  if (server) await send(server, "/api/admin/budgets", wanted);
  else await withConfig(environment, (config, stores) => addOffline(config, wanted, stores));
  const whose = wanted.each === undefined ? "" : ` for each ${wanted.each}`;
  say(`The budget ${name} was added: ${amountOf(wanted.limit, wanted)} per ${wanted.per}${whose}.`);
  return 0;
}

interface RemoveOptions {
  environment: Environment;
  name: string;
  yes: boolean;
}

export async function budgetRm({ environment, name, yes }: RemoveOptions): Promise<number> {
  const server = serverOf(environment);
  say(...besideDemo(environment, "this changes your real config"));
  if (!(await mayRemove(`Remove the budget ${name}? Its requests are then unlimited.`, yes))) return 1;
  if (server) await send(server, "/api/admin/budgets/remove", { name });
  else await withConfig(environment, (config) => removeStoredBudget(config, name));
  say(`The budget ${name} was removed. A new one of the same name, unit and period continues with what was used.`);
  return 0;
}

/** @throws UsageError that names the option. */
function readBudget(options: AddOptions): Budget {
  const { name, limit, limitOf, unit, per, then, each } = options;
  if (limit === undefined)
    throw new UsageError("--limit is missing: say how much may be used in a period, such as --limit 20.");
  if (Number.isNaN(Number(limit))) throw new UsageError(`--limit must be a number, such as 20; it is \`${limit}\`.`);
  const given = {
    ...definedOnly({ unit: unit ?? "credits", per: per ?? "month", then, each }),
    name,
    limit: Number(limit),
    ...(limitOf !== undefined && { limits: limitsFrom(limitOf) }),
    scope: definedOnly(Object.fromEntries(scopeNames.map((part) => [part, options[part]]))),
  };
  return readOptions(budgetSchema(), given, { name: "The name", limits: "--limit-of" });
}

const definedOnly = <T extends object>(given: T) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));

/** @param text `anna=3000,ben=500` */
const limitsFrom = (text: string) =>
  Object.fromEntries(
    text.split(",").map((pair) => {
      const at = pair.lastIndexOf("=");
      const limit = Number(pair.slice(at + 1));
      if (at < 1 || Number.isNaN(limit))
        throw new UsageError(`--limit-of must be pairs such as anna=3000,ben=500; \`${pair}\` is none.`);
      return [pair.slice(0, at).trim(), limit];
    }),
  );

/** A line for each budget. */
function budgetLines(items: readonly BudgetItem[], now: number): string[] {
  const rows = items.map((item) => [
    item.name,
    Object.entries(item.scope)
      .map(([name, pattern]) => `${name}=${pattern}`)
      .join(" ") || "all requests",
    usedText(item),
    `${amountOf(item.limit, item)} per ${item.per}${item.each ? ` for each ${item.each}` : ""}`,
    resetCell(item.resets_at_ms, now),
    (item.used !== null && item.used >= item.limit) || (item.used === null && item.exhausted)
      ? `${atLimit[item.then]}${item.holders ? " for some" : ""}`
      : "ready",
  ]);
  return table([["budget", "scope", "used", "limit", "resets", "state"], ...rows]);
}

function usedText({ used, limit, holders, unknown_price_count: unknown }: BudgetItem): string {
  if (used !== null) return `${usedInWords(used, unknown)} (${percent(used / limit)})`;
  const [highest] = holders?.items ?? [];
  return highest ? `${holderName(highest)}: ${usedBy(highest)}` : "–";
}

const usedBy = ({ used, limit, unknown_price_count: unknown }: HolderItem) =>
  `${usedInWords(used, unknown)} (${percent(used / limit)})`;

/** A line for each that has an amount of its own. */
function holderLines({ holders, each }: BudgetItem): string[] {
  if (!holders || holders.items.length === 0) return [];
  const rows = holders.items.map((holder) => [holderName(holder), usedBy(holder), significant(holder.limit)]);
  const word = each ?? "member";
  const more = holders.count - rows.length;
  return [
    "",
    ...table([[word, "used", "limit"], ...rows]),
    ...(more > 0 ? [`and ${plural(more, word)} with less`] : []),
  ];
}

const atLimit: Record<BudgetItem["then"], string> = {
  stop: "exhausted",
  fallback: "exhausted",
  warn: "exceeded",
};
