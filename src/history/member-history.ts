/** The history as one member sees it: rows of this member only. */
import { ProxyError } from "../errors";
import type { Filters, History, Row } from "./history";
import type { InFlight, InFlightRequest } from "./in-flight";

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

/** The requests in flight as one member sees them. */
export function inFlightOf(inFlight: InFlight, member: string): InFlight {
  const isOwn = (request: Pick<InFlightRequest, "member"> | undefined) => request?.member === member;
  return {
    begin: (requestId, exchange) => inFlight.begin(requestId, exchange),
    notify: (requestId) => inFlight.notify(requestId),
    end: (entry) => inFlight.end(entry),
    /** Of everybody: it says how busy the server is. */
    get count() {
      return inFlight.count;
    },
    idle: () => inFlight.idle(),
    running: () => inFlight.running().filter(isOwn),
    find(requestId) {
      const found = inFlight.find(requestId);
      return isOwn(found) ? found : undefined;
    },
    cancel: (requestId) => isOwn(inFlight.find(requestId)) && inFlight.cancel(requestId),
    watch: (watcher) =>
      inFlight.watch((event) => {
        if (event.type === "closed" || isOwn(event.type === "running" ? event.running : event.entry)) watcher(event);
      }),
    close() {},
  };
}
