/** Exponential backoff for the calls to GitHub that fetch a token. */
interface BackoffOptions {
  /** Monotonic clock, ms. */
  monotonic(): number;
  /** 0 … 1, for jitter. */
  random(): number;
}

const second = 1000;

/** When GitHub may be asked again: 1, 2, 4 … 60 s after a failure, with jitter. */
export function openBackoff({ monotonic, random }: BackoffOptions) {
  /** By the monotonic clock. */
  let waitUntil = Number.NEGATIVE_INFINITY;
  let failures = 0;
  let reason = "";
  return {
    get waiting() {
      return monotonic() < waitUntil;
    },
    /** The last request for a token failed. */
    get failing() {
      return failures > 0;
    },
    /** Milliseconds. */
    get left() {
      return Math.max(0, waitUntil - monotonic());
    },
    get reason() {
      return reason;
    },
    waitFor(ms: number): void {
      waitUntil = monotonic() + ms;
    },
    endWait(): void {
      waitUntil = Number.NEGATIVE_INFINITY;
    },
    succeeded(): void {
      failures = 0;
    },
    /** @param after Milliseconds GitHub asks to wait at least. */
    failed(why: string, after = 0): void {
      const ms = Math.min(60, 2 ** failures) * second * (0.8 + 0.4 * random());
      failures = Math.min(failures + 1, 10);
      reason = why;
      waitUntil = monotonic() + Math.max(ms, after);
    },
  };
}
