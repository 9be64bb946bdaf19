/** `dragoman budget`: what is used of each budget, from the running server. */
import { type BudgetItem, budgetListSchema } from "../budgets/budget-list";
import { amountOf } from "../budgets/guard";
import type { Environment } from "../config/environment";
import { percent, significant, zonedTime } from "../format";
import { adminHeaders, ask, readAs, requireServer } from "./running-server";
import { table } from "./table";
import { print, printJson, say } from "./terminal";

export async function budget({ environment, json }: { environment: Environment; json: boolean }): Promise<number> {
  const server = requireServer(environment);
  const answer = await ask(server, { path: "/api/admin/budgets", headers: adminHeaders(server) });
  const { items } = readAs(budgetListSchema(), answer, server);
  if (json) printJson(answer);
  else if (items.length === 0)
    say("There are no budgets. Add one on the Budgets page of the admin pages, or in the config.");
  else print(...budgetLines(items, Date.now()));
  return 0;
}

/** A line for each budget. */
export function budgetLines(items: readonly BudgetItem[], now: number): string[] {
  const rows = items.map((item) => [
    item.name,
    Object.entries(item.scope)
      .map(([name, pattern]) => `${name}=${pattern}`)
      .join(" ") || "all requests",
    item.used === null ? "–" : `${significant(item.used)} (${percent(item.used / item.limit)})`,
    `${amountOf(item.limit, item)} per ${item.per}`,
    item.resets_at_ms === null ? "–" : zonedTime(item.resets_at_ms, now),
    item.used !== null && item.used >= item.limit ? atLimit[item.then] : "ready",
  ]);
  return table([["budget", "scope", "used", "limit", "resets", "state"], ...rows]);
}

const atLimit: Record<BudgetItem["then"], string> = { stop: "exhausted", fallback: "exhausted", warn: "exceeded" };
