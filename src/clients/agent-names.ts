/** Names of coding agents in User-Agent that more than one file needs. */

export const claudeCodeName = /^claude-(?:cli|code)/i;
export const codexName = /^codex/i;
export const opencodeName = /^opencode/i;
export const qwenCodeName = /^qwen-?code/i;

/** Clients that end a stream on which no event came for five minutes: comments do not count. By test/clients/held.ts. */
export const countsOnlyEvents = (userAgent: string | null): boolean => userAgent !== null && codexName.test(userAgent);

/**
 * Clients that silently wait for any `retry-after` of a 429, whatever `x-should-retry` says:
 * Codex 0.169, opencode 1.18.33 and Qwen Code 0.24.4, by test/clients/refused.ts and error-cases.ts.
 */
const sleepers = [codexName, opencodeName, qwenCodeName];

export const sleepsThroughRests = (userAgent: string | null): boolean =>
  userAgent !== null && sleepers.some((name) => name.test(userAgent));
