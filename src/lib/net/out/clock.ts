/** The time limits of an outgoing call: the waits for its headers, for each piece of its body, and in total. */
import { ProxyError } from "../../errors";
import { inSeconds, silenceError } from "./network-errors";

/** Milliseconds. */
export interface CallLimits {
  /** Until the response's headers. */
  headers: number;
  /** Without a byte of the body while a read is pending. */
  idle: number;
  /** The whole call, from the request to the last byte of the response. */
  total: number;
}

/** The same limit for the headers, each piece and the whole call. @param ms Milliseconds. */
export const singleLimit = (ms: number): CallLimits => ({ headers: ms, idle: ms, total: ms });

/** Runs from the sending of a call until `stop`. */
export interface CallClock {
  /** Aborts when a limit is exceeded (its reason is the error) or when the caller's signal aborts (with the same reason). */
  readonly signal: AbortSignal;
  /** The headers have arrived. */
  answered(): void;
  /** A read is pending. While none is, the idle limit does not count. */
  awaits(): void;
  /** The pending read has ended. */
  heard(): void;
  stop(): void;
}

/**
 * @param who Who is called, for messages: `GitHub Copilot`.
 * @param url For messages that name the proxy on the way.
 * @param caller Ends the call as well. A controller is used as it is: a limit of the call aborts it too.
 */
export function startClock(
  limits: CallLimits,
  who: string,
  url: string,
  caller?: AbortSignal | AbortController,
): CallClock {
  return new RunningClock(limits, who, url, caller);
}

class RunningClock implements CallClock {
  readonly signal: AbortSignal;
  readonly #ending: AbortController;
  readonly #startedAt = performance.now();
  #awaitedSince: number | undefined = this.#startedAt;
  #stage: "headers" | "idle" = "headers";
  #timer: Timer | undefined;
  /** Stops listening to the signal of the caller. */
  #unlink: (() => void) | undefined;

  constructor(
    readonly limits: CallLimits,
    readonly who: string,
    readonly url: string,
    caller?: AbortSignal | AbortController,
  ) {
    this.#ending = caller instanceof AbortController ? caller : new AbortController();
    this.signal = this.#ending.signal;
    if (caller instanceof AbortSignal) this.#link(caller);
    if (!this.signal.aborted) RunningClock.#check(this);
  }

  answered(): void {
    this.#stage = "idle";
    this.#awaitedSince = undefined;
  }

  awaits(): void {
    this.#awaitedSince = performance.now();
  }

  heard(): void {
    this.#awaitedSince = undefined;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#unlink?.();
  }

  /** `AbortSignal.any` is several times slower. */
  #link(caller: AbortSignal): void {
    const abort = () => this.#end(caller.reason);
    this.#unlink = () => caller.removeEventListener("abort", abort);
    if (caller.aborted) abort();
    else caller.addEventListener("abort", abort);
  }

  #end(reason: unknown): void {
    this.stop();
    this.#ending.abort(reason);
  }

  /**
   * Runs when the timer fires, and sets it again for the time that is left, but at most for the wait between two pieces; so
   * neither the headers nor a piece of the body have to set a timer.
   */
  static #check(clock: RunningClock): void {
    const { limits, who, url } = clock;
    const now = performance.now();
    const silence = clock.#awaitedSince === undefined ? 0 : now - clock.#awaitedSince;
    const passed = now - clock.#startedAt;
    const left = Math.min(limits[clock.#stage] - silence, limits.total - passed);
    if (left > 0) clock.#timer = setTimeout(RunningClock.#check, Math.ceil(Math.min(left, limits.idle)), clock);
    else if (clock.#stage === "headers") clock.#end(silenceError(url, who, Math.min(limits.headers, limits.total)));
    else
      clock.#end(
        new ProxyError(
          "timeout",
          passed < limits.total ? idleMessage(who, limits.idle) : totalMessage(who, limits.total),
        ),
      );
  }
}

const idleMessage = (who: string, ms: number) =>
  `${who} sent nothing for ${inSeconds(ms)} before its answer was complete; it was given up.`;

const totalMessage = (who: string, ms: number) =>
  `${who}'s answer was not complete after ${inSeconds(ms)}; it was given up.`;
