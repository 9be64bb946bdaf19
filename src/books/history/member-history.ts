/** The history as one member sees it: rows of this member only. */
import type { Awaitable } from "../../lib/awaitable";
import { ProxyError } from "../../lib/errors";
import { Turns } from "../../lib/turns";
import type { Filters, History, Row } from "./history";

/** Reads at once: half of what a server reads at once of its database, so that another member's page need not wait for all of them. */
const maxAtOnce = 2;
/** Reads that wait for them. A page has 40 at most. */
const maxWaiting = 400;

/** What it writes is written as in the whole history. What only the owner's pages ask for is refused. */
export function historyOf(history: History, member: string): History {
  const own = (filters: Filters): Filters => ({ ...filters, member });
  const ifOwn = (row: Row | undefined) => (row?.member === member ? row : undefined);
  const refuse = (): never => {
    throw new ProxyError("permission", "Only the owner of this dragoman may read the whole history.");
  };
  const turns = new Turns(maxAtOnce);
  const inTurn = async <T>(read: () => Awaitable<T>): Promise<T> => {
    if (turns.waiting < maxWaiting) return turns.run(read);
    throw new ProxyError("rate_limit", "Too many of your questions to the history wait. Ask again in a moment.", {
      headers: { "retry-after": "5" },
    });
  };
  return {
    add: (entry) => history.add(entry),
    flush: () => history.flush(),
    list: (filters, limit, cursor) => inTurn(() => history.list(own(filters), limit, cursor)),
    get: (requestId) => inTurn(async () => ifOwn(await history.get(requestId))),
    count: () => inTurn(async () => (await history.totals(own({}))).request_count),
    lastOf: (filters) => inTurn(() => history.lastOf(own(filters))),
    totals: (filters) => inTurn(() => history.totals(own(filters))),
    statistics: (filters, by, signal) => inTurn(() => history.statistics(own(filters), by, signal)),
    largestSessions: (filters, count) => inTurn(() => history.largestSessions(own(filters), count)),
    prompts: (filters, limit, cursor, order) => inTurn(() => history.prompts(own(filters), limit, cursor, order)),
    portions: (filters) => inTurn(() => history.portions({ ...filters, member })),
    after: refuse,
    oldest: refuse,
    prune: refuse,
    tokenRatios: refuse,
    keepTokenRatio: refuse,
    get degraded() {
      return history.degraded;
    },
    get queued() {
      return history.queued;
    },
    get lost() {
      return history.lost;
    },
    close() {},
  };
}
