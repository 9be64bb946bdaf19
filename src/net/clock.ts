/** How long a call out may take: every wait for an upstream, for its headers and for each piece of its body, is measured here. */
import { ProxyError } from "../errors";
import { inSeconds, silenceError } from "./network-errors";

/** Milliseconds. */
export interface CallLimits {
  /** Until the answer's headers. */
  headers: number;
  /** Without a byte of the body, while somebody waits for one. */
  idle: number;
  /** The whole call, from its sending to the last byte of its body. */
  total: number;
}

/** One limit for the whole of a call. @param ms Milliseconds. */
export const within = (ms: number): CallLimits => ({ headers: ms, idle: ms, total: ms });

/** Runs from the sending of a call until `stop`. */
export interface CallClock {
  /** Aborts when a limit has passed (its reason is the error to be told) or when the caller's own signal has (with its reason). */
  readonly signal: AbortSignal;
  /** The headers are here. */
  answered(): void;
  /** From now on bytes are awaited; a reader that asks for none leaves the upstream all the time it wants. */
  awaits(): void;
  /** They are here. */
  heard(): void;
  stop(): void;
}

/**
 * @param who Whose answer is awaited, for sentences: `GitHub Copilot`.
 * @param url Names the proxy on the way, for sentences.
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
    caller?.removeEventListener("abort", leave);
  };
  const end = (reason: unknown) => {
    stop();
    ending.abort(reason);
  };
  // `AbortSignal.any` costs several times as much.
  const leave = () => end(caller?.reason);

  /** A timer that is late is set again for what is left, so that no piece of a body has to set one. */
  const judge = () => {
    const now = performance.now();
    const silence = awaitedSince === undefined ? 0 : now - awaitedSince;
    const passed = now - startedAt;
    const left = Math.min(limits[stage] - silence, limits.total - passed);
    if (left > 0) timer = setTimeout(judge, Math.ceil(left));
    else if (stage === "headers") end(silenceError(url, who, Math.min(limits.headers, limits.total)));
    else end(new ProxyError("timeout", passed < limits.total ? mute(who, limits.idle) : endless(who, limits.total)));
  };

  if (caller?.aborted) leave();
  else {
    caller?.addEventListener("abort", leave, { once: true });
    timer = setTimeout(judge, Math.min(limits.headers, limits.total));
  }
  return {
    signal: ending.signal,
    answered() {
      stage = "idle";
      awaitedSince = undefined;
      clearTimeout(timer);
      judge();
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

const mute = (who: string, ms: number) =>
  `${who} sent nothing for ${inSeconds(ms)} before its answer was complete; it was given up.`;

const endless = (who: string, ms: number) =>
  `${who}'s answer was not complete after ${inSeconds(ms)}; it was given up.`;
