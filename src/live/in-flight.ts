/** Requests in flight, and events for those who watch them. Kept in memory only, without any content. */
import { ProxyError } from "../errors";
import { cut, type Entry, type InFlightRequest } from "../history/entry";

export interface InFlightHandle {
  /** The id of the member whose request it is; null for the owner's. */
  readonly member: string | null;
  /** The request's present state. */
  tell(): InFlightRequest;
  /** Ends the request at once; its client gets the error. */
  stop(why: ProxyError): void;
}

export type InFlightEvent = { type: "running"; running: InFlightRequest } | { type: "finished"; entry: Entry };

/** Must not throw or block. */
type Watcher = (event: InFlightEvent) => void;

export interface InFlight {
  begin(requestId: string, exchange: InFlightHandle): void;
  /** Reports that more is known of the request. */
  notify(requestId: string): void;
  end(entry: Entry): void;
  /** How many requests are in flight. */
  readonly count: number;
  /** How many of them are a member's. */
  countOf(member: string): number;
  /** Settles when no request is in flight. */
  idle(): Promise<void>;
  /** The requests in flight, the oldest first. */
  running(): InFlightRequest[];
  find(requestId: string): InFlightRequest | undefined;
  /** Cancels the request for the owner, or for the member whose key it uses; false when no such request is in flight. */
  cancel(requestId: string, by?: "owner" | "member"): boolean;
  /** @returns A function that ends the watch. */
  watch(watcher: Watcher): () => void;
}

export function openInFlight(): InFlight {
  const exchanges = new Map<string, InFlightHandle>();
  const counts = new Map<string, number>();
  const watchers = new Set<Watcher>();
  let idle: PromiseWithResolvers<void> | undefined;

  const count = (member: string | null | undefined, more: number) => {
    if (member == null) return;
    const sum = (counts.get(member) ?? 0) + more;
    if (sum > 0) counts.set(member, sum);
    else counts.delete(member);
  };
  const emit = (event: InFlightEvent) => {
    for (const watcher of [...watchers]) watcher(event);
  };
  const emitRunning = (requestId: string) => {
    const exchange = exchanges.get(requestId);
    if (exchange && watchers.size > 0) emit({ type: "running", running: cut(exchange.tell()) });
  };

  return {
    begin(requestId, exchange) {
      exchanges.set(requestId, exchange);
      count(exchange.member, 1);
      emitRunning(requestId);
    },
    notify: emitRunning,
    end(entry) {
      count(exchanges.get(entry.request_id)?.member, -1);
      exchanges.delete(entry.request_id);
      if (exchanges.size === 0) idle?.resolve();
      if (watchers.size > 0) emit({ type: "finished", entry: cut(entry) });
    },
    get count() {
      return exchanges.size;
    },
    countOf: (member) => counts.get(member) ?? 0,
    async idle() {
      while (exchanges.size > 0) {
        idle = Promise.withResolvers();
        await idle.promise;
      }
    },
    running: () => [...exchanges.values()].map((exchange) => cut(exchange.tell())),
    find(requestId) {
      const exchange = exchanges.get(requestId);
      return exchange && cut(exchange.tell());
    },
    cancel(requestId, by = "owner") {
      const exchange = exchanges.get(requestId);
      exchange?.stop(cancelled(by));
      return exchange !== undefined;
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
  };
}

/** `x-should-retry` keeps clients from sending the request again. */
const cancelled = (by: "owner" | "member") =>
  new ProxyError("no_account", `${cancellers[by]} cancelled the request.`, {
    code: "cancelled",
    headers: { "x-should-retry": "false" },
  });

const cancellers = { owner: "The owner of this proxy", member: "The member whose key it uses" };
