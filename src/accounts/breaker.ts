/** A circuit breaker: an account whose requests keep failing upstream cools down for a while, so that another one serves. */
import type { Account } from "./account";

export interface Breaker {
  served(account: Account): void;
  /** @param why A status or a kind of error, for the log. */
  failed(account: Account, why: string): void;
}

const second = 1000;
/** Consecutive failures that open the breaker. */
const maxFailures = 5;

/** @param accounts Read at each use: the last account that is ready is never cooled down. */
export function openBreaker(accounts: () => readonly Account[], now: () => number): Breaker {
  const counters = new WeakMap<Account, { failures: number; cooldowns: number }>();
  return {
    served: (account) => void counters.delete(account),
    failed(account, why) {
      // A request that fails during a cooldown was sent before it.
      if (account.state.name !== "ready") return;
      const { failures, cooldowns } = counters.get(account) ?? { failures: 0, cooldowns: 0 };
      const another = accounts().some((other) => other !== account && other.state.name === "ready");
      if (failures + 1 < maxFailures || !another) {
        counters.set(account, { failures: failures + 1, cooldowns });
        return;
      }
      // After the cooldown the next request is a probe: one more failure starts another, longer cooldown.
      counters.set(account, { failures: maxFailures - 1, cooldowns: cooldowns + 1 });
      const cooldownMs = Math.min((cooldowns + 1) * 30, 300) * second;
      const reason = `Its last requests all failed at GitHub Copilot (${why}).`;
      account.mark({ name: "cooling", until: now() + cooldownMs, reason });
    },
  };
}
