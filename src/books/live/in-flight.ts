/** Requests in flight, and events for those who watch them. Kept in memory only, without any content. */
import { ProxyError } from "../../lib/errors";
import { cut, type Entry, type InFlightRequest } from "../history/entry";

export interface InFlightHandle {
  /** The id of the member whose request it is; null for the owner's. */
  readonly member: string | null;
  /** The request's present state. */
  tell(): InFlightRequest;
  /** Ends the request at once; its client gets the error. */
  stop(why: ProxyError): void;
  /** Writes its row now, whatever it still waits for. */
  cutShort(why: ProxyError): void;
}

export type InFlightEvent = { type: "running"; running: InFlightRequest } | { type: "finished"; entry: Entry };

/** Must not throw or block. */
type Watcher = (event: InFlightEvent) => void;

export class InFlight {
  readonly #exchanges = new Map<string, InFlightHandle>();
  readonly #counts = new Map<string, number>();
  readonly #watchers = new Set<Watcher>();
  #idle: PromiseWithResolvers<void> | undefined;

  begin(requestId: string, exchange: InFlightHandle): void {
    this.#exchanges.set(requestId, exchange);
    this.#count(exchange.member, 1);
    this.notify(requestId);
  }

  /** Reports that more is known of the request. */
  notify(requestId: string): void {
    if (this.#watchers.size === 0) return;
    const running = this.find(requestId);
    if (running) this.#emit({ type: "running", running });
  }

  end(entry: Entry): void {
    this.#count(this.#exchanges.get(entry.request_id)?.member, -1);
    this.#exchanges.delete(entry.request_id);
    if (this.#exchanges.size === 0) this.#idle?.resolve();
    if (this.#watchers.size > 0) this.#emit({ type: "finished", entry: cut(entry) });
  }

  /** How many requests are in flight. */
  get count(): number {
    return this.#exchanges.size;
  }

  /** How many of them are a member's. */
  countOf(member: string): number {
    return this.#counts.get(member) ?? 0;
  }

  /** Settles when no request is in flight. */
  async idle(): Promise<void> {
    while (this.#exchanges.size > 0) {
      this.#idle = Promise.withResolvers();
      await this.#idle.promise;
    }
  }

  /** The requests in flight, the oldest first. */
  running(): InFlightRequest[] {
    return [...this.#exchanges.values()].map((exchange) => cut(exchange.tell()));
  }

  find(requestId: string): InFlightRequest | undefined {
    const exchange = this.#exchanges.get(requestId);
    return exchange && cut(exchange.tell());
  }

  /** Cancels the request for the owner, or for the member whose key it uses; false when no such request is in flight. */
  cancel(requestId: string, by: "owner" | "member" = "owner"): boolean {
    const exchange = this.#exchanges.get(requestId);
    exchange?.stop(cancelled(by));
    return exchange !== undefined;
  }

  /** Ends all requests at once. @param why For their clients. */
  stopAll(why: ProxyError): void {
    for (const exchange of [...this.#exchanges.values()]) exchange.stop(why);
  }

  /** Writes the rows of all requests that are still in flight. */
  cutAllShort(why: ProxyError): void {
    for (const exchange of [...this.#exchanges.values()]) exchange.cutShort(why);
  }

  /** @returns A function that ends the watch. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  #count(member: string | null | undefined, more: number): void {
    if (member == null) return;
    const sum = this.countOf(member) + more;
    if (sum > 0) this.#counts.set(member, sum);
    else this.#counts.delete(member);
  }

  #emit(event: InFlightEvent): void {
    for (const watcher of [...this.#watchers]) watcher(event);
  }
}

/** `x-should-retry` keeps clients from sending the request again. */
const cancelled = (by: "owner" | "member") =>
  new ProxyError("no_account", `${cancellers[by]} cancelled the request.`, {
    code: "cancelled",
    headers: { "x-should-retry": "false" },
  });

const cancellers = { owner: "The owner of this proxy", member: "The member whose key it uses" };
