/** The history as one member sees it: rows of this member only. */
import { ProxyError } from "../errors";
import type { Filters, History, Row } from "./history";

/** What it writes is written as in the whole history. What only the owner's pages ask for is refused. */
export function historyOf(history: History, member: string): History {
  const own = (filters: Filters): Filters => ({ ...filters, member });
  const ifOwn = (row: Row | undefined) => (row?.member === member ? row : undefined);
  const refuse = (): never => {
    throw new ProxyError("permission", "Only the owner of this dragoman may read the whole history.");
  };
  return {
    add: (entry) => history.add(entry),
    flush: () => history.flush(),
    list: (filters, limit, cursor) => history.list(own(filters), limit, cursor),
    get: async (requestId) => ifOwn(await history.get(requestId)),
    count: async () => (await history.totals(own({}))).request_count,
    lastOf: (filters) => history.lastOf(own(filters)),
    totals: (filters) => history.totals(own(filters)),
    statistics: (filters, by) => history.statistics(own(filters), by),
    after: refuse,
    oldest: refuse,
    prune: refuse,
    get degraded() {
      return history.degraded;
    },
    get queued() {
      return history.queued;
    },
    close() {},
  };
}
