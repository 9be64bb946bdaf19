/** Sends the frames of an answer at the demo's pace, with the faults of the directives, until the caller hangs up. */
import type { Effects } from "./faults";

/** One server-sent event. `opening` comes before the content; `finish` says why it ended; `end` is the last one. */
export interface Frame {
  part: "opening" | "content" | "finish" | "end";
  text: string;
}

/** What a dialect sends for faults in the middle of a stream. */
export interface Interjections {
  error: string;
  failed: string;
  /** An event that clients ignore. */
  ping: string;
}

interface Delivery {
  pace: number;
  /** Aborted when the caller hangs up or the demo stops. */
  signal: AbortSignal;
  /** Only the first call has an effect. */
  left(aborted: boolean): void;
}

const silence = Symbol("silence");
const reset = Symbol("reset");
type Fault = typeof silence | typeof reset;
type Step = string | Fault;

/** Without a pace: frames sent before other work gets a turn. */
const burst = 16;

const bytes = new TextEncoder();

export function deliver(
  frames: Iterable<Frame>,
  interjections: Interjections,
  effects: Effects,
  { pace, signal, left }: Delivery,
): ReadableStream<Uint8Array> {
  const steps = packets(script(frames, interjections, effects), effects)[Symbol.iterator]();
  const together = pace || effects.chop ? 1 : burst;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (let sent = 0; sent < together && !signal.aborted; sent += 1) {
        const step = steps.next();
        if (step.done) {
          left(false);
          controller.close();
          return;
        }
        if (step.value === reset) {
          // A reader that has not got what was sent before would lose it: the system drops it at the reset.
          await nap(30, signal);
          left(false);
          controller.error(new Error("DEMO: connection reset on request"));
          return;
        }
        if (step.value === silence) {
          await nap((effects.silence ?? 0) * 1000, signal);
          // A pull that enqueues nothing would not be called again.
          sent -= 1;
        } else controller.enqueue(step.value);
      }
      await nap(effects.chop ? 0 : pace, signal);
    },
    cancel: () => left(true),
  });
}

/** What is written at once: a frame, or a piece of one. */
function* packets(steps: Iterable<Step>, { crlf, chop }: Effects): Generator<Uint8Array | Fault> {
  for (const step of steps) {
    if (typeof step !== "string") {
      yield step;
      continue;
    }
    const packet = bytes.encode(crlf ? step.replaceAll("\n", "\r\n") : step);
    const size = chop ?? packet.length;
    for (let start = 0; start < packet.length; start += size) yield packet.subarray(start, start + size);
  }
}

/** The frames, with the faults of the directives. */
function* script(frames: Iterable<Frame>, interjections: Interjections, effects: Effects): Generator<Step> {
  if (effects.empty) return;
  if (effects.firstError) {
    yield interjections.error;
    return;
  }
  const { after = 3, noFinish, noDone } = effects;
  let content = 0;
  let waiting = effects.midway;
  for (const frame of frames) {
    const due = waiting && (content >= after || frame.part === "finish" || frame.part === "end");
    if (due && waiting) {
      yield* faultSteps[waiting](interjections);
      if (!passing.has(waiting)) return;
      waiting = undefined;
    }
    if (frame.part === "content") content += 1;
    const missing = (noFinish && frame.part === "finish") || (noDone && frame.part === "end");
    if (!missing) yield frame.text;
  }
  if (effects.afterDone) yield ': more\n\ndata: {"late":true}\n\ndata: [DONE]\n\n';
}

/** Faults after which the answer continues. */
const passing = new Set<Effects["midway"]>(["silence", "broken", "ping"]);

const faultSteps: Record<NonNullable<Effects["midway"]>, (interjections: Interjections) => Step[]> = {
  reset: () => [reset],
  end: () => [],
  silence: () => [silence],
  broken: () => ['data: {"broken\n\n'],
  error: ({ error }) => [error],
  failed: ({ failed }) => [failed],
  ping: ({ ping }) => [ping],
};

/** Waits until the time is over or the signal aborts. Even a wait of 0 gives other requests a turn. */
export function nap(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (milliseconds <= 0) return new Promise((resolve) => setImmediate(resolve));
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, milliseconds);
    signal.addEventListener("abort", wake, { once: true });
    if (signal.aborted) wake();
  });
}
