/**
 * Where requests wait for a limit to end: in the order in which they came, and let out few at a time, so that they do not run into
 * the next limit together.
 */
import type { ProxyError } from "../../lib/errors";

/** A request that waits. Its times are those of the clock that never jumps, ms. */
export interface Waiter {
  /** Requests of one person for one model stand in one line. */
  line: string;
  /** When it came, which is its place in the line. */
  since: number;
  /** Of its body, which is in memory as long as it waits. */
  bytes: number;
  /** Until when it waits at most. */
  deadline: number;
  /** Milliseconds until its limit ends; 0 when it is over, undefined when a person must act. */
  untilReady(): number | undefined;
  /** Why it cannot be served now: the answer when it has waited in vain. */
  error: ProxyError;
  /** Aborts when nobody wants its answer any more. */
  signal: AbortSignal;
}

/** Requests that may wait at a time: of everybody, and in one line, so that nobody takes all the room. */
export const [maxWaiting, maxInLine] = [1_000, 100];
/** Bytes of their bodies, likewise: the largest body has 32 MiB. */
export const [maxBytes, maxBytesInLine] = [512 * 2 ** 20, 128 * 2 ** 20];
/** Requests of a line that are let out at a time, at most. */
const maxAtATime = 32;
/** Milliseconds between two looks at the lines. */
const lookEvery = 250;

interface Entry {
  waiter: Waiter;
  letOut(): void;
  refuse(error: unknown): void;
}

interface Line {
  /** The oldest first. */
  waiting: Entry[];
  /** Of their bodies. */
  bytes: number;
  /** How many were let out and have no answer yet. */
  out: number;
  /** How many may be out: one more with each that was served, one again after the next limit. */
  atATime: number;
}

export class WaitingRoom {
  readonly #lines = new Map<string, Line>();
  #count = 0;
  #bytes = 0;
  #timer: Timer | undefined;
  #stopped: (() => ProxyError) | undefined;

  /** How many requests wait. */
  get count(): number {
    return this.#count;
  }

  /** The last one of a line whose limit is over: who comes now waits behind it. Others may wait for accounts of their own. */
  lastReadyOf(line: string): Pick<Waiter, "error"> | undefined {
    return this.#lines.get(line)?.waiting.findLast(({ waiter }) => !waiter.untilReady())?.waiter;
  }

  /**
   * Waits until the request may be sent. One that meets a limit again comes back to its place.
   * @returns To be called when it has its answer, or none.
   * @throws ProxyError Its own error if there is no room, or when it has waited in vain; that of `stop`; the reason of its signal.
   */
  async wait(waiter: Waiter): Promise<(wasServed: boolean) => void> {
    if (this.#stopped) throw this.#stopped();
    waiter.signal.throwIfAborted();
    const line = this.#lines.get(waiter.line) ?? { waiting: [], bytes: 0, out: 0, atATime: 1 };
    if (this.#count >= maxWaiting || line.waiting.length >= maxInLine) throw waiter.error;
    if (this.#bytes + waiter.bytes > maxBytes || line.bytes + waiter.bytes > maxBytesInLine) throw waiter.error;
    this.#lines.set(waiter.line, line);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry: Entry = { waiter, letOut: resolve, refuse: reject };
    // Those that came before it may still have been trying, and join later.
    line.waiting.splice(line.waiting.findLastIndex((each) => each.waiter.since <= waiter.since) + 1, 0, entry);
    this.#count += 1;
    this.#bytes += waiter.bytes;
    line.bytes += waiter.bytes;
    this.#timer ??= setInterval(() => this.#look(), lookEvery).unref();
    const abort = () => reject(waiter.signal.reason);
    waiter.signal.addEventListener("abort", abort, { once: true });
    try {
      await promise;
    } catch (thrown) {
      this.#remove(line, entry);
      this.#tidy(waiter.line, line);
      throw thrown;
    } finally {
      waiter.signal.removeEventListener("abort", abort);
    }
    return (wasServed) => {
      line.out -= 1;
      line.atATime = wasServed ? Math.min(maxAtATime, line.atATime + 1) : 1;
      this.#letOut(line);
      this.#tidy(waiter.line, line);
    };
  }

  /** Sends everybody away, and lets nobody in any more. */
  stop(error: () => ProxyError): void {
    this.#stopped = error;
    for (const { waiting } of this.#lines.values()) for (const { refuse } of waiting) refuse(error());
  }

  #look(): void {
    const now = performance.now();
    for (const line of this.#lines.values()) {
      for (const { waiter, refuse } of line.waiting) if (now >= waiter.deadline) refuse(waiter.error);
      this.#letOut(line);
    }
  }

  #letOut(line: Line): void {
    if (this.#stopped || line.out >= line.atATime) return;
    // Whoever needs a person's help learns that from the next try.
    const ready = line.waiting.filter(({ waiter }) => !waiter.untilReady() && performance.now() < waiter.deadline);
    for (const entry of ready.slice(0, line.atATime - line.out)) {
      this.#remove(line, entry);
      line.out += 1;
      entry.letOut();
    }
  }

  #remove(line: Line, entry: Entry): void {
    line.waiting.splice(line.waiting.indexOf(entry), 1);
    this.#count -= 1;
    this.#bytes -= entry.waiter.bytes;
    line.bytes -= entry.waiter.bytes;
    if (this.#count > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tidy(name: string, { waiting, out }: Line): void {
    if (waiting.length === 0 && out === 0) this.#lines.delete(name);
  }
}
