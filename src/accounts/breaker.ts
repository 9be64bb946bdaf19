/** An account whose requests keep failing on the upstream's side rests a while, so that another one can serve. */
import type { Account } from "./account";

export interface Breaker {
  served(account: Account): void;
  /** @param why A status or a kind of error, for the sentence in the log. */
  failed(account: Account, why: string): void;
}

const second = 1000;
/** Failures in a row. */
const enough = 5;

/** @param accounts Read at each use: the last one that is ready never rests. */
export function openBreaker(accounts: () => readonly Account[], now: () => number): Breaker {
  const rows = new WeakMap<Account, { failures: number; rests: number }>();
  return {
    served: (account) => void rows.delete(account),
    failed(account, why) {
      // What fails during a rest was sent before it.
      if (account.state.name !== "ready") return;
      const { failures, rests } = rows.get(account) ?? { failures: 0, rests: 0 };
      const another = accounts().some((other) => other !== account && other.state.name === "ready");
      if (failures + 1 < enough || !another) {
        rows.set(account, { failures: failures + 1, rests });
        return;
      }
      // After the rest the next request is a probe: one more failure is another, longer rest.
      rows.set(account, { failures: enough - 1, rests: rests + 1 });
      const pause = Math.min((rests + 1) * 30, 300) * second;
      const reason = `Its last requests failed one after the other on GitHub Copilot's side (${why}).`;
      account.mark({ name: "cooling", until: now() + pause, reason });
    },
  };
}
