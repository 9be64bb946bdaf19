/** What a model costs and holds, in the few words that fit beside its name. */

interface Costs {
  premium: boolean;
  units?: number | null;
  tokens?: { input: number | null; output: number | null; per: number } | null;
}

/** `free`, `0.33 premium`, `300/1500 credits per 1 M in/out`, or `unknown`. */
export function costOf({ units = null, tokens = null, premium }: Costs): string {
  if (units === null && tokens === null) return "unknown";
  if (!premium && (tokens === null || (tokens.input ?? 0) + (tokens.output ?? 0) === 0)) return "free";
  if (tokens === null || (premium && units !== null)) return `${units} premium`;
  return `${tokens.input}/${tokens.output} credits per ${tokens.per / 1e6} M in/out`;
}

/**
 * `300/1500 credits per 1 M in/out · 168K prompt`. Claude Code shows the first 100 characters (2.1.330).
 * @param prompt Tokens; undefined if unknown.
 */
export function summaryOf(price: Costs, prompt: number | undefined): string {
  const cost = costOf(price);
  const said = cost === "unknown" ? "price unknown" : cost;
  return prompt === undefined ? said : `${said} · ${shortened(prompt)} prompt`;
}

const shortened = (tokens: number): string =>
  tokens < 1_000_000 ? `${Math.round(tokens / 1000)}K` : `${Math.round(tokens / 10_000) / 100}M`;
