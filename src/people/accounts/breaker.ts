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

/** Counts failures in a row. */
export function openFailureCounter<Key extends WeakKey>() {
  const counters = new WeakMap<Key, { failures: number; cooldowns: number }>();
  return {
    served: (key: Key) => void counters.delete(key),
    /**
     * @param mayCoolDown Whether it may cool down now.
     * @returns Milliseconds for which it is to cool down; undefined if it is not.
     */
    failed(key: Key, mayCoolDown: boolean): number | undefined {
      const { failures, cooldowns } = counters.get(key) ?? { failures: 0, cooldowns: 0 };
      if (failures + 1 < maxFailures || !mayCoolDown) {
        counters.set(key, { failures: failures + 1, cooldowns });
        return undefined;
      }
      // After the cooldown the next request is a probe: one more failure starts another, longer cooldown.
      counters.set(key, { failures: maxFailures - 1, cooldowns: cooldowns + 1 });
      return Math.min((cooldowns + 1) * 30, 300) * second;
    },
  };
}

/** @param accounts Read at each use: the last account that is ready is never cooled down. */
export function openBreaker(accounts: () => readonly Account[], now: () => number): Breaker {
  const counter = openFailureCounter<Account>();
  return {
    served: counter.served,
    failed(account, why) {
      // A request that fails during a cooldown was sent before it.
      if (account.state.name !== "ready") return;
      const another = accounts().some((other) => other !== account && other.state.name === "ready");
      const cooldownMs = counter.failed(account, another);
      if (cooldownMs === undefined) return;
      const reason = `Its last requests all failed at GitHub Copilot (${why}).`;
      account.setState({ name: "cooling", until: now() + cooldownMs, reason });
    },
  };
}
