/** What a client is billed for, as a table: a line for each day. */
import type { Scope } from "../../app";
import { isoDay } from "../../format";
import type { Filters } from "../../history/history";
import { clientClosed } from "../../relay/client-error";

const promptsAtOnce = 200;

/**
 * CSV of the matching requests by day, by this machine's clock: prompts, requests, AI credits, their price in US dollars (GitHub:
 * 0.01 for a credit), premium requests, requests of unknown cost, and whether the cost is at least this. A prompt counts on the day on which it began.
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
  const lines = groups
    .toReversed()
    .map(({ key: { day = "" }, request_count, nano_credits, premium_units, unknown_cost_count, cost_at_least }) => {
      const credits = nano_credits === null ? ["", ""] : [nano_credits / 1e9, (nano_credits / 1e11).toFixed(6)];
      return [
        day,
        prompts.get(day ?? "") ?? 0,
        request_count,
        ...credits,
        premium_units ?? "",
        unknown_cost_count,
        cost_at_least,
      ].join(",");
    });
  const head = "day,prompts,requests,ai_credits,us_dollars,premium_requests,requests_of_unknown_cost,cost_at_least";
  return [head, ...lines, ""].join("\r\n");
}
