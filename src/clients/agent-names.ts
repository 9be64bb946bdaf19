/** How coding agents name themselves in User-Agent, where more than one place must know. */

export const codexName = /^codex/i;
export const opencodeName = /^opencode/i;

/**
 * Clients that sleep through a `retry-after` of any length on a 429, without a word, whatever `x-should-retry` says:
 * Codex 0.169 and opencode 1.18.33, by test/clients/refused.ts.
 */
const sleepers = [codexName, opencodeName];

export const sleepsThroughRests = (userAgent: string | null): boolean =>
  userAgent !== null && sleepers.some((name) => name.test(userAgent));
