/** The running requests of this server, which the pages and the admin API show. */
import { ProxyError } from "../../lib/errors";
import { plural } from "../../lib/format";
import type { Team } from "../../people/keys/team";
import type { InFlightRequest } from "../history/entry";
import type { InFlight, InFlightEvent } from "./in-flight";

/** `closed` is the last event. */
export type RunningEvent = InFlightEvent | { type: "closed" };

/** Must not throw or block. */
type RunningWatcher = (event: RunningEvent) => void;

export interface RunningRequests {
  /** The oldest first. */
  list(): InFlightRequest[];
  find(requestId: string): InFlightRequest | undefined;
  /** Ends the request at once; its client gets an error. @returns False when no such request runs here. */
  cancel(requestId: string): boolean;
  /** @returns A function that ends the watch. @throws ProxyError `rate_limit` when there are too many watchers. */
  watch(watcher: RunningWatcher): () => void;
  /** Says that other servers of the team run requests too, which are not shown here: a sentence. Missing where there are none. */
  readonly elsewhere: string | undefined;
}

/** Of the owner, of one member, and of all members together. */
const maxWatchers = { owner: 50, member: 10, members: 500 };

export class LiveRequests {
  readonly #inFlight: InFlight;
  readonly #team: Team | undefined;
  /** Who watches, and the member whose requests they see; all requests if undefined. */
  readonly #watchers = new Map<RunningWatcher, string | undefined>();
  #unwatch: (() => void) | undefined;
  #isClosed = false;

  constructor(inFlight: InFlight, team: Team | undefined) {
    this.#inFlight = inFlight;
    this.#team = team;
  }

  /** @param member The id of a member, for whom only their own requests exist; without it, those of everybody do. */
  of(member?: string): RunningRequests {
    const isShown = (request: InFlightRequest) => member === undefined || request.member === member;
    const find = (requestId: string) => {
      const found = this.#inFlight.find(requestId);
      return found && isShown(found) ? found : undefined;
    };
    const elsewhere = () => this.#elsewhere();
    return {
      list: () => this.#inFlight.running().filter(isShown),
      find,
      cancel: (requestId) =>
        find(requestId) !== undefined && this.#inFlight.cancel(requestId, member === undefined ? "owner" : "member"),
      watch: (watcher) => this.#watch(watcher, member),
      get elsewhere() {
        return elsewhere();
      },
    };
  }

  /** Ends all watches. */
  close(): void {
    this.#isClosed = true;
    this.#emit({ type: "closed" });
  }

  #elsewhere(): string | undefined {
    if (!this.#team) return undefined;
    const { servers } = this.#team;
    if (!servers) return "Requests that other servers run are not shown here.";
    const others = servers.length - 1;
    return others > 0 ? `Requests that ${plural(others, "other server")} may run are not shown here.` : undefined;
  }

  #watch(watcher: RunningWatcher, member: string | undefined): () => void {
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
    this.#unwatch ??= this.#inFlight.watch((event) => this.#emit(event));
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size > 0) return;
      this.#unwatch?.();
      this.#unwatch = undefined;
    };
  }

  /** Calls those whom the event concerns. */
  #emit(event: RunningEvent): void {
    const request = event.type === "running" ? event.running : event.type === "finished" ? event.entry : undefined;
    for (const [watcher, member] of [...this.#watchers])
      if (!request || member === undefined || request.member === member) watcher(event);
  }
}

const tooMany = (limit: number) =>
  new ProxyError("rate_limit", `${limit} pages already watch the requests in flight. Close one of them.`);
