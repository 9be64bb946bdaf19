/** Exchanges while they run, and the moment they end: for whoever watches now. In memory only; never their content. */
import { ProxyError } from "../errors";
import { cut, type Entry } from "./entry";

/** What is known of an exchange before it has ended. */
export type InFlightRequest = Pick<
  Entry,
  | "request_id"
  | "started_at_ms"
  | "first_byte_ms"
  | "path"
  | "client_dialect"
  | "upstream_dialect"
  | "upstream_endpoint"
  | "account_id"
  | "account_key"
  | "client_model"
  | "upstream_model"
  | "stream"
  | "initiator"
  | "initiator_reason"
  | "attempts"
  | "client_name"
>;

export interface InFlightHandle {
  /** As it is now. */
  tell(): InFlightRequest;
  /** Ends it at once; its client is told why. */
  stop(why: ProxyError): void;
}

export type InFlightEvent =
  | { type: "running"; running: InFlightRequest }
  | { type: "finished"; entry: Entry }
  /** Nothing will follow. */
  | { type: "closed" };

/** Must not throw, and must not wait. */
export type Watcher = (event: InFlightEvent) => void;

export interface InFlight {
  begin(requestId: string, exchange: InFlightHandle): void;
  /** More is known of it. */
  notify(requestId: string): void;
  end(entry: Entry): void;
  /** How many run now. */
  readonly count: number;
  /** What runs now, the oldest first. */
  running(): InFlightRequest[];
  find(requestId: string): InFlightRequest | undefined;
  /** Ends it in the name of the owner; false when no such exchange runs. */
  cancel(requestId: string): boolean;
  /** @returns What ends the watch. @throws ProxyError `rate_limit` when too many watch. */
  watch(watcher: Watcher): () => void;
  /** Nobody may watch any more. */
  close(): void;
}

const maxWatchers = 50;

export function openInFlight(): InFlight {
  const exchanges = new Map<string, InFlightHandle>();
  const watchers = new Set<Watcher>();
  let closed = false;

  const say = (event: InFlightEvent) => {
    for (const watcher of [...watchers]) watcher(event);
  };
  const sayRunning = (requestId: string) => {
    const exchange = exchanges.get(requestId);
    if (exchange && watchers.size > 0) say({ type: "running", running: cut(exchange.tell()) });
  };

  return {
    begin(requestId, exchange) {
      exchanges.set(requestId, exchange);
      sayRunning(requestId);
    },
    notify: sayRunning,
    end(entry) {
      exchanges.delete(entry.request_id);
      if (watchers.size > 0) say({ type: "finished", entry: cut(entry) });
    },
    get count() {
      return exchanges.size;
    },
    running: () => [...exchanges.values()].map((exchange) => cut(exchange.tell())),
    find(requestId) {
      const exchange = exchanges.get(requestId);
      return exchange && cut(exchange.tell());
    },
    cancel(requestId) {
      const exchange = exchanges.get(requestId);
      exchange?.stop(cancelled());
      return exchange !== undefined;
    },
    watch(watcher) {
      if (watchers.size >= maxWatchers)
        throw new ProxyError("rate_limit", `${maxWatchers} pages watch already; close one of them.`);
      if (closed) watcher({ type: "closed" });
      else watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    close() {
      closed = true;
      say({ type: "closed" });
      watchers.clear();
    },
  };
}

/** Clients would otherwise send it again by themselves. */
const cancelled = () =>
  new ProxyError("no_account", "The owner of this proxy cancelled the request.", {
    code: "cancelled",
    headers: { "x-should-retry": "false" },
  });
