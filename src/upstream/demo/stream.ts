/** Sends the frames of an answer at the demo's pace, with the faults that were ordered, until the caller hangs up. */
import type { Orders } from "./faults";

/** One server-sent event. `opening` comes before the content; `finish` says why it ended; `end` is the last one. */
export interface Frame {
  part: "opening" | "content" | "finish" | "end";
  text: string;
}

/** What a dialect says when something happens midway. */
export interface Interjections {
  error: string;
  failed: string;
  /** Something to be ignored. */
  ping: string;
}

export interface Delivery {
  pace: number;
  /** Aborted when the caller hangs up or the demo stops. */
  signal: AbortSignal;
  /** Only the first call counts. */
  left(aborted: boolean): void;
}

const silence = Symbol("silence");
const reset = Symbol("reset");
type Mishap = typeof silence | typeof reset;
type Step = string | Mishap;

/** Frames sent between two looks at the event loop when there is no pace. */
const burst = 16;

const bytes = new TextEncoder();

export function deliver(
  frames: Iterable<Frame>,
  says: Interjections,
  orders: Orders,
  { pace, signal, left }: Delivery,
): ReadableStream<Uint8Array> {
  const steps = packets(script(frames, says, orders), orders)[Symbol.iterator]();
  const together = pace || orders.chop ? 1 : burst;
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
          await nap(5, signal); // what was sent before gets out first
          left(false);
          controller.error(new Error("DEMO: connection reset on request"));
          return;
        }
        if (step.value === silence) {
          await nap((orders.silence ?? 0) * 1000, signal);
          // A pull that gives nothing would not be followed by another.
          sent -= 1;
        } else controller.enqueue(step.value);
      }
      await nap(orders.chop ? 0 : pace, signal);
    },
    cancel: () => left(true),
  });
}

/** What is written at once: a frame, or less when it is to be chopped. */
function* packets(steps: Iterable<Step>, { crlf, chop }: Orders): Generator<Uint8Array | Mishap> {
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

/** The frames with the ordered faults worked in. */
function* script(frames: Iterable<Frame>, says: Interjections, orders: Orders): Generator<Step> {
  if (orders.empty) return;
  if (orders.firstError) {
    yield says.error;
    return;
  }
  const { after = 3, noFinish, noDone } = orders;
  let content = 0;
  let waiting = orders.midway;
  for (const frame of frames) {
    const due = waiting && (content >= after || frame.part === "finish" || frame.part === "end");
    if (due && waiting) {
      yield* mishaps[waiting](says);
      if (!passing.has(waiting)) return;
      waiting = undefined;
    }
    if (frame.part === "content") content += 1;
    const missing = (noFinish && frame.part === "finish") || (noDone && frame.part === "end");
    if (!missing) yield frame.text;
  }
  if (orders.afterDone) yield ': more\n\ndata: {"late":true}\n\ndata: [DONE]\n\n';
}

/** Mishaps after which the answer goes on. */
const passing = new Set<Orders["midway"]>(["silence", "broken", "ping"]);

const mishaps: Record<NonNullable<Orders["midway"]>, (says: Interjections) => Step[]> = {
  reset: () => [reset],
  end: () => [],
  silence: () => [silence],
  broken: () => ['data: {"broken\n\n'],
  error: ({ error }) => [error],
  failed: ({ failed }) => [failed],
  ping: ({ ping }) => [ping],
};

/** Waits, or stops waiting when the signal comes. Even no wait lets other requests have a turn. */
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
