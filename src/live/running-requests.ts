/** The running requests that pages and the admin API show: of this server, or of all servers that share a database. */
import { ProxyError } from "../errors";
import type { InFlightRequest } from "../history/entry";
import type { InFlight, InFlightEvent } from "./in-flight";

export interface RunningList {
  /** The oldest first. */
  running: InFlightRequest[];
  /** How many run, also those that are not listed. */
  count: number;
  /** A sentence that says of which servers it is unknown what they run; missing if it is known of all. */
  gap?: string;
}

export type RunningEvent =
  | InFlightEvent
  /** The list is to be read again. */
  | { type: "renewed" }
  /** The last event. */
  | { type: "closed" };

/** Must not throw or block. */
export type RunningWatcher = (event: RunningEvent) => void;

/** Wherever a member's id is given, only the member's own requests exist. Without one, those of everybody do. */
export interface RunningRequests {
  /** Asks the other servers, which takes a second at most. Never throws. */
  list(member?: string): Promise<RunningList>;
  /** What is known without asking; it is current while somebody watches. */
  known(member?: string): RunningList;
  /** Without asking. */
  findKnown(requestId: string, member?: string): InFlightRequest | undefined;
  /** @throws ProxyError `unable` if a server that may run it cannot be asked. */
  find(requestId: string, member?: string): Promise<InFlightRequest | undefined>;
  /**
   * Ends the request at once; its client gets an error.
   * @returns False when no such request runs.
   * @throws ProxyError `unable` if a server that may run it cannot be asked.
   */
  cancel(requestId: string, member?: string): Promise<boolean>;
  /** @returns A function that ends the watch. @throws ProxyError `rate_limit` when there are too many watchers. */
  watch(watcher: RunningWatcher, member?: string): () => void;
  /** Ends all watches. */
  close(): void;
}

/** Those of this server. */
export function runningHere(inFlight: InFlight): RunningRequests {
  const watchers = new Watchers(inFlight);
  const known = (member?: string): RunningList => {
    const running = inFlight.running().filter(isOf(member));
    return { running, count: running.length };
  };
  return {
    list: async (member) => known(member),
    known,
    findKnown: (requestId, member) => findHere(inFlight, requestId, member),
    find: async (requestId, member) => findHere(inFlight, requestId, member),
    cancel: async (requestId, member) => cancelHere(inFlight, requestId, member),
    watch: (watcher, member) => watchers.add(watcher, member),
    close: () => watchers.close(),
  };
}

/** What one member sees of them. */
export const runningOf = (running: RunningRequests, member: string): RunningRequests => ({
  list: () => running.list(member),
  known: () => running.known(member),
  findKnown: (requestId) => running.findKnown(requestId, member),
  find: (requestId) => running.find(requestId, member),
  cancel: (requestId) => running.cancel(requestId, member),
  watch: (watcher) => running.watch(watcher, member),
  close() {},
});

export const isOf =
  (member: string | undefined) =>
  (request: Pick<InFlightRequest, "member">): boolean =>
    member === undefined || request.member === member;

/**
 * Those to list where not all can be: members take turns, each with the oldest first, so that nobody's requests hide all others.
 * @param requests The oldest first, and so is the result.
 */
export function fairShare<R extends Pick<InFlightRequest, "member">>(requests: readonly R[], limit: number): R[] {
  if (requests.length <= limit) return [...requests];
  const counts = new Map<string | null, number>();
  const ranked = requests.map((request, at) => {
    const turn = counts.get(request.member) ?? 0;
    counts.set(request.member, turn + 1);
    return { request, at, turn };
  });
  const listed = ranked.sort((one, other) => one.turn - other.turn || one.at - other.at).slice(0, limit);
  return listed.sort((one, other) => one.at - other.at).map(({ request }) => request);
}

export function findHere(inFlight: InFlight, requestId: string, member?: string): InFlightRequest | undefined {
  const found = inFlight.find(requestId);
  return found && isOf(member)(found) ? found : undefined;
}

export const cancelHere = (inFlight: InFlight, requestId: string, member?: string): boolean =>
  findHere(inFlight, requestId, member) !== undefined &&
  inFlight.cancel(requestId, member === undefined ? "owner" : "member");

/** Of the owner, of one member, and of all members together. */
const maxWatchers = { owner: 50, member: 10, members: 500 };

/** They get the events of this server's requests, while there are any. */
export class Watchers {
  readonly #inFlight: InFlight;
  readonly #watchers = new Map<RunningWatcher, string | undefined>();
  #unwatch: (() => void) | undefined;
  #isClosed = false;

  constructor(inFlight: InFlight) {
    this.#inFlight = inFlight;
  }

  /** @returns A function that removes it. @throws ProxyError `rate_limit` */
  add(watcher: RunningWatcher, member?: string): () => void {
    const members = [...this.#watchers.values()];
    const limit = member === undefined ? maxWatchers.owner : maxWatchers.member;
    if (members.filter((other) => other === member).length >= limit) throw tooMany(limit);
    if (member !== undefined && members.filter((other) => other !== undefined).length >= maxWatchers.members)
      throw tooMany(maxWatchers.members);
    if (this.#isClosed) {
      watcher({ type: "closed" });
      return () => {};
    }
    this.#watchers.set(watcher, member);
    this.#unwatch ??= this.#inFlight.watch((event) => this.emit(event));
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size > 0) return;
      this.#unwatch?.();
      this.#unwatch = undefined;
    };
  }

  /** Calls those whom the event concerns. */
  emit(event: RunningEvent): void {
    const request = event.type === "running" ? event.running : event.type === "finished" ? event.entry : undefined;
    for (const [watcher, member] of [...this.#watchers]) if (!request || isOf(member)(request)) watcher(event);
  }

  close(): void {
    this.#isClosed = true;
    this.emit({ type: "closed" });
  }
}

const tooMany = (limit: number) =>
  new ProxyError("rate_limit", `${limit} pages already watch the requests in flight. Close one of them.`);
