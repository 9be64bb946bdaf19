/** What a model costs and holds, in the few words that fit beside its name. */

import { type ListedPrice, priceInWords } from "../lib/format";

/**
 * `300/1,500 credits per M in/out · 168K prompt`. Claude Code shows the first 100 characters (2.1.330).
 * @param prompt Tokens; undefined if unknown.
 */
export function summaryOf(price: ListedPrice, prompt: number | undefined): string {
  const cost = priceInWords(price);
  const said = cost === "unknown" ? "price unknown" : cost;
  return prompt === undefined ? said : `${said} · ${shortened(prompt)} prompt`;
}

const shortened = (tokens: number): string =>
  tokens < 1_000_000 ? `${Math.round(tokens / 1000)}K` : `${Math.round(tokens / 10_000) / 100}M`;
