/** The time limits of an outgoing call: the waits for its headers, for each piece of its body, and in total. */
import { ProxyError } from "../errors";
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

/** One limit for the whole of a call. @param ms Milliseconds. */
export const within = (ms: number): CallLimits => ({ headers: ms, idle: ms, total: ms });

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
 * @param caller Ends the call as well.
 */
export function startClock(limits: CallLimits, who: string, url: string, caller?: AbortSignal): CallClock {
  const ending = new AbortController();
  const startedAt = performance.now();
  let awaitedSince: number | undefined = startedAt;
  let stage: "headers" | "idle" = "headers";
  let timer: Timer | undefined;

  const stop = () => {
    clearTimeout(timer);
    caller?.removeEventListener("abort", abortByCaller);
  };
  const end = (reason: unknown) => {
    stop();
    ending.abort(reason);
  };
  // `AbortSignal.any` is several times slower.
  const abortByCaller = () => end(caller?.reason);

  /** Runs when the timer fires, and sets it again for the time that is left; so no piece of a body has to set a timer. */
  const checkLimits = () => {
    const now = performance.now();
    const silence = awaitedSince === undefined ? 0 : now - awaitedSince;
    const passed = now - startedAt;
    const left = Math.min(limits[stage] - silence, limits.total - passed);
    if (left > 0) timer = setTimeout(checkLimits, Math.ceil(left));
    else if (stage === "headers") end(silenceError(url, who, Math.min(limits.headers, limits.total)));
    else
      end(
        new ProxyError(
          "timeout",
          passed < limits.total ? idleMessage(who, limits.idle) : totalMessage(who, limits.total),
        ),
      );
  };

  if (caller?.aborted) abortByCaller();
  else {
    caller?.addEventListener("abort", abortByCaller, { once: true });
    timer = setTimeout(checkLimits, Math.min(limits.headers, limits.total));
  }
  return {
    signal: ending.signal,
    answered() {
      stage = "idle";
      awaitedSince = undefined;
      clearTimeout(timer);
      checkLimits();
    },
    awaits() {
      awaitedSince = performance.now();
    },
    heard() {
      awaitedSince = undefined;
    },
    stop,
  };
}

const idleMessage = (who: string, ms: number) =>
  `${who} sent nothing for ${inSeconds(ms)} before its answer was complete; it was given up.`;

const totalMessage = (who: string, ms: number) =>
  `${who}'s answer was not complete after ${inSeconds(ms)}; it was given up.`;
