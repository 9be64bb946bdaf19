/** What a client is billed for, as a table: a line for each day and unit. */

import type { Filters } from "../../books/history/history";
import { isoDay } from "../../lib/format";
import { knownIn } from "../../lib/money";
import type { Scope } from "../../parts/app";
import { clientClosed } from "../../proxy/relay/client-error";

const promptsAtOnce = 200;

/**
 * CSV of the matching requests by day, by this machine's clock: prompts, requests, the unit they are billed in, the amount, its
 * price in US dollars (GitHub: 0.01 for an AI credit), requests of unknown cost, and whether the cost is at least this. A prompt
 * counts on the day on which it began. Counts stand in the first line of a day alone, so that a column can be added up.
 * @param signal Of the asker: nothing more is read once it is aborted.
 * @throws ProxyError if it is.
 */
export async function billOf({ history }: Scope, filters: Filters, signal: AbortSignal): Promise<string> {
  const { groups } = await history.statistics(filters, ["day"], signal);
  const prompts = new Map<string, number>();
  for (let cursor: number | undefined; ; ) {
    if (signal.aborted) throw clientClosed;
    const page = await history.prompts(filters, promptsAtOnce, cursor);
    for (const { started_at_ms } of page.items) {
      const day = isoDay(started_at_ms);
      prompts.set(day, (prompts.get(day) ?? 0) + 1);
    }
    if (page.next_cursor_id === null) break;
    cursor = page.next_cursor_id;
  }
  const lines = groups.toReversed().flatMap(({ key: { day = "" }, request_count, cost, unknown, cost_at_least }) => {
    const amounts = knownIn(cost).map(([unit, amount]) => [
      ...[unit, amount / 1e9],
      unit === "credits" ? (amount / 1e11).toFixed(6) : "",
    ]);
    if (amounts.length === 0) amounts.push(["", "", ""]);
    return amounts.map((amount, at) => {
      const counts = [prompts.get(day ?? "") ?? 0, request_count, unknown.cost];
      const [begun, requests, unpriced] = at === 0 ? counts : ["", "", ""];
      return [day, begun, requests, ...amount, unpriced, cost_at_least].join(",");
    });
  });
  const head = "day,prompts,requests,unit,amount,us_dollars,requests_of_unknown_cost,cost_at_least";
  return [head, ...lines, ""].join("\r\n");
}
