/**
 * Where requests wait for a limit to end: in the order in which they came, and let out few at a time, so that they do not run
 * into the next limit together. Bounded in number and in the bytes of their bodies.
 */
import type { ProxyError } from "../errors";

/** A request that waits. */
export interface Waiter {
  id: string;
  /** Requests of one person for one model stand in one line. */
  line: string;
  /** The member whose request it is; null for the owner's. */
  member: string | null;
  /** Of its body. */
  bytes: number;
  /** Timestamp, ms: when it came, which is its place in the line. */
  since: number;
  /** Milliseconds until its limit ends; 0 when it is over, undefined when a person must act. */
  untilReady(): number | undefined;
  /** Timestamp, ms: how long it waits at most. */
  deadline: number;
  /** Why it cannot be served now: the answer when it has waited in vain. */
  error: ProxyError;
  /** Aborts when nobody wants its answer any more. */
  signal: AbortSignal;
}

export interface WaitingRoomOptions {
  /** Wall clock, ms. */
  now(): number;
  limits?: Partial<WaitingLimits>;
}

interface WaitingLimits {
  /** Requests of everybody, and of one member. */
  all: number;
  ofMember: number;
  /** Of the bodies of all that wait. */
  bytes: number;
}

const defaultLimits: WaitingLimits = { all: 1_000, ofMember: 200, bytes: 256 * 1024 * 1024 };
/** Milliseconds between two looks at the lines. */
const lookEvery = 250;
/** Requests of a line that are let out at a time, at most. */
const maxWindow = 32;

interface Entry {
  waiter: Waiter;
  isOut: boolean;
  /** Its limit has ended. */
  isReady: boolean;
  /** When it came, by the monotonic clock, ms. */
  cameAt: number;
  letOut(): void;
  refuse(error: unknown): void;
}

interface Line {
  /** The oldest first. */
  entries: Entry[];
  /** How many of the oldest may be out: one more with each that was served, one again after the next limit. */
  window: number;
}

export class WaitingRoom {
  readonly #options: WaitingRoomOptions;
  readonly #limits: WaitingLimits;
  readonly #lines = new Map<string, Line>();
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #timer: Timer | undefined;
  #stopped: (() => ProxyError) | undefined;

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
  }

  /** How many requests wait, or were let out and are not served yet. */
  get count(): number {
    return this.#entries.size;
  }

  /** The last one of a line: who comes now waits behind it. */
  lastOf(line: string): Pick<Waiter, "untilReady" | "error"> | undefined {
    return this.#lines.get(line)?.entries.findLast(({ isOut }) => !isOut)?.waiter;
  }

  /**
   * Waits until the request may be sent. It keeps its place until `leave`.
   * @throws ProxyError Its own error if there is no room, or when it has waited in vain; that of `stop`; the reason of its signal.
   */
  async wait(waiter: Waiter): Promise<void> {
    if (this.#stopped) throw this.#stopped();
    waiter.signal.throwIfAborted();
    const known = this.#entries.get(waiter.id);
    if (!known && !this.#hasRoomFor(waiter)) throw waiter.error;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry: Entry = {
      waiter,
      isOut: false,
      isReady: false,
      cameAt: known?.cameAt ?? performance.now() - (this.#options.now() - waiter.since),
      letOut: resolve,
      refuse: reject,
    };
    const abort = () => reject(waiter.signal.reason);
    waiter.signal.addEventListener("abort", abort, { once: true });
    if (known) this.#limitedAgain(known, entry);
    else this.#join(entry);
    this.#timer ??= setInterval(() => this.#look(), lookEvery).unref();
    try {
      await promise;
    } catch (thrown) {
      this.leave(waiter.id);
      throw thrown;
    } finally {
      waiter.signal.removeEventListener("abort", abort);
    }
  }

  /** The request is served, refused or given up. @param wasServed More of its line may be let out at a time. */
  leave(id: string, wasServed = false): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#entries.delete(id);
    this.#bytes -= entry.waiter.bytes;
    const line = this.#lines.get(entry.waiter.line)!;
    line.entries.splice(line.entries.indexOf(entry), 1);
    if (wasServed) line.window = Math.min(maxWindow, line.window + 1);
    if (line.entries.length === 0) this.#lines.delete(entry.waiter.line);
    if (this.#entries.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#look();
  }

  /** Sends everybody away, and lets nobody in any more. */
  stop(error: () => ProxyError): void {
    this.#stopped = error;
    for (const { isOut, refuse } of [...this.#entries.values()]) if (!isOut) refuse(error());
  }

  #hasRoomFor({ member, bytes }: Waiter): boolean {
    const { all, ofMember, bytes: maxBytes } = this.#limits;
    if (this.count >= all || this.#bytes + bytes > maxBytes) return false;
    if (member === null) return true;
    return [...this.#entries.values()].filter((each) => each.waiter.member === member).length < ofMember;
  }

  #join(entry: Entry): void {
    const { waiter } = entry;
    const line = this.#lines.get(waiter.line) ?? { entries: [], window: 1 };
    this.#lines.set(waiter.line, line);
    // Those that came before it may still have been trying, and join later.
    line.entries.splice(line.entries.findLastIndex(({ cameAt }) => cameAt <= entry.cameAt) + 1, 0, entry);
    this.#entries.set(waiter.id, entry);
    this.#bytes += waiter.bytes;
  }

  /** It keeps its place. */
  #limitedAgain(before: Entry, entry: Entry): void {
    const line = this.#lines.get(entry.waiter.line)!;
    line.window = 1;
    line.entries[line.entries.indexOf(before)] = entry;
    this.#entries.set(entry.waiter.id, entry);
  }

  #look(): void {
    const now = this.#options.now();
    for (const line of this.#lines.values()) {
      for (const entry of line.entries) {
        if (entry.isOut) continue;
        // Whoever needs a person's help learns that from the next try.
        entry.isReady = !entry.waiter.untilReady();
        if (isLate(entry, now)) entry.refuse(entry.waiter.error);
      }
      this.#letOut(line);
    }
  }

  #letOut({ entries, window }: Line): void {
    const ready = entries.filter((entry) => entry.isReady || entry.isOut);
    for (const entry of ready.slice(0, window)) {
      if (entry.isOut) continue;
      entry.isOut = true;
      entry.letOut();
    }
  }
}

/**
 * Whether it has waited for as long as it may, by the clock that never jumps; or by the wall clock, where its limit lasts. A machine
 * that slept finds its client waiting, and the limit over.
 */
const isLate = ({ waiter: { since, deadline }, isReady, cameAt }: Entry, now: number): boolean =>
  performance.now() - cameAt >= deadline - since || (now >= deadline && !isReady);
