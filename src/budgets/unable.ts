/** What happens to requests and pages when the ledger cannot be used. */
import type { Awaitable } from "../awaitable";
import { ProxyError } from "../errors";
import { sqliteCode } from "../sqlite";

/** A budget that cannot be checked is not taken for one that has something left. */
export const orUnable = <T>(work: () => Awaitable<T>): Awaitable<T> =>
  recovered(work, (thrown) => {
    if (thrown instanceof ProxyError && thrown.kind === "unable") throw thrown;
    // A full disk takes no change of the config either.
    const isFull = /^SQLITE_(FULL|IOERR)/.test(sqliteCode(thrown) ?? "");
    throw new ProxyError(
      "unable",
      `The budgets cannot be checked, so no request is sent: ${sentenceOf(thrown)} ${isFull ? "Free the disk." : "Remove the budgets from the config to go on without them."}`,
      { code: "budget_unavailable", cause: thrown, headers: { "x-should-retry": "false" } },
    );
  });

/** The result of `work`, or of `recover` if it fails, at once or later. */
export function recovered<T>(work: () => Awaitable<T>, recover: (thrown: unknown) => T): Awaitable<T> {
  try {
    const result = work();
    return result instanceof Promise ? result.catch(recover) : result;
  } catch (thrown) {
    return recover(thrown);
  }
}

export const sentenceOf = (thrown: unknown) =>
  `${thrown instanceof Error ? thrown.message.replace(/\.$/, "") : String(thrown)}.`;
