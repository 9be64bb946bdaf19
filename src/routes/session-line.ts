/** What a session of a client cost, as one line of text for status bars: `GET /usage/line?session=`. */

import type { Row } from "../books/history/history";
import { addedCost, costInWords } from "../lib/money";
import type { Scope } from "../parts/app";
import { sessionHash } from "../proxy/relay/session-id";
import { lifetimes } from "../proxy/upstream/cache-watch";
import { accountUsageItem } from "./usage";
import { usageLine } from "./usage-line";

/**
 * @param session The id that the client sends.
 * @param format Text with `{fields}` for the account that the session's last request used; see `usageLine`. By default what is left
 * of it, with its name where there are several.
 * @returns An empty line for a session of which nothing is known yet.
 */
export async function sessionLine(app: Scope, session: string, format?: string, now = app.now()): Promise<string> {
  const filters = { session: sessionHash(session) };
  const [totals, prompts, rows] = await Promise.all([
    app.history.totals(filters),
    app.history.prompts(filters, 1),
    app.history.list(filters, 1),
  ]);
  const [last] = rows.items;
  if (!last) return "";
  const used = app.accounts.filter(({ key }) => key === last.account_key);
  const prompt = costInWords(addedCost(prompts.items[0]?.parts ?? []), true);
  const parts = [
    // Bars cut a line at its end, and this passes.
    cacheLeft(app, last, now),
    prompt === undefined ? "" : `${prompt} prompt`,
    `${costInWords(totals, true) ?? "?"} session`,
    usageLine(
      (await accountUsageItem(used)).accounts,
      format ?? (app.accounts.length > 1 ? "{account}: {left}" : "{left}"),
      now,
    ),
  ];
  return parts.filter(Boolean).join(" · ");
}

/**
 * How long the upstream still keeps the prompt: five minutes after its last use, and for Claude an hour where the config asks
 * for that. Nothing is said of prompts that are too short for a cache, or of which the upstream says nothing.
 */
function cacheLeft({ config }: Scope, last: Row, now: number): string {
  if (!last.cached_tokens && !last.cache_write_tokens) return "";
  const isHour = config.current.promptCache === "1h" && /^claude/.test(last.upstream_model ?? "");
  const ms = last.started_at_ms + last.duration_ms + lifetimes[isHour ? "hour" : "usual"] - now;
  if (ms <= 0) return "cache cold";
  const seconds = Math.floor(ms / 1_000);
  return `cache ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
