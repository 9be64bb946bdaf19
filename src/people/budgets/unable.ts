/** What happens to requests and pages when the ledger cannot be used. */
import { type Awaitable, orElse } from "../../lib/awaitable";
import { ProxyError } from "../../lib/errors";
import { isBusy, sqliteCode } from "../../lib/sqlite";

/** Milliseconds for which a write waits while another process writes to the ledger's file. */
const patience = 2_000;
/** Milliseconds between two tries, in which this process does other work. */
const pause = 20;

/** Tries again as long as another process holds the file's lock. A use that failed so has changed nothing. */
export const patiently = <T>(work: () => Awaitable<T>, until = performance.now() + patience): Awaitable<T> =>
  orElse(work, async (thrown) => {
    if (!isBusy(thrown) || performance.now() > until) throw thrown;
    await Bun.sleep(pause);
    return patiently(work, until);
  });

/** A budget that cannot be checked is not taken for one that has something left. */
export const orUnable = <T>(work: () => Awaitable<T>): Awaitable<T> =>
  orElse(
    () => patiently(work),
    (thrown) => {
      if (thrown instanceof ProxyError && thrown.kind === "unable") throw thrown;
      if (isBusy(thrown))
        throw new ProxyError(
          "no_account",
          "The budgets cannot be checked, so no request is sent: another process writes to the ledger. Try again.",
          { code: "budget_unavailable", cause: thrown, headers: { "retry-after": "1" } },
        );
      // A full disk takes no change of the config either.
      const isFull = /^SQLITE_(FULL|IOERR)/.test(sqliteCode(thrown) ?? "");
      throw new ProxyError(
        "unable",
        `The budgets cannot be checked, so no request is sent: ${sentenceOf(thrown)} ${isFull ? "Free the disk." : "Remove the budgets from the config to go on without them."}`,
        { code: "budget_unavailable", cause: thrown, headers: { "x-should-retry": "false" } },
      );
    },
  );

export const sentenceOf = (thrown: unknown) =>
  `${thrown instanceof Error ? thrown.message.replace(/\.$/, "") : String(thrown)}.`;
