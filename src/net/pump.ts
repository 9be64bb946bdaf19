/**
 * Pumps an upstream's body through a chain of stages to a client. Back-pressure, the client's hang-up, silence, time
 * limits and a stream that breaks are judged here, so that no stage has to.
 */
import { asProxyError, ProxyError } from "../errors";
import type { Sink } from "./stream";

export interface Chain {
  /** Where the upstream's bytes go in. */
  feed: Sink<Uint8Array>;
  /** What the chain has made for the client since the last call; undefined when nothing. */
  take(): Uint8Array | undefined;
  /** The reply's terminal event is out: whatever the upstream still sends is of no use. */
  isOver(): boolean;
  /** The upstream is silent: put something harmless into the output. */
  beat(): void;
  /** Something broke: put the error into the output. Does nothing when the terminal event is out. */
  fail(error: ProxyError): void;
  /** Called once, when nothing more will be sent. */
  ended(how: "complete" | "failed" | "client-gone"): void;
}

/** Milliseconds. */
export interface PumpLimits {
  /** Silence after which the client gets a sign of life. */
  beat: number;
  /** Silence after which the upstream is given up. */
  idle: number;
  /** What a whole stream may take. */
  total: number;
}

export interface Pumped {
  /** Settles when the first output is there, when the upstream has ended, or after `beat` ms of silence. */
  begun: Promise<void>;
  body: ReadableStream<Uint8Array>;
}

/**
 * @param gone Aborts when the client hangs up; the upstream call must be tied to it as well.
 * @param stopping Each aborts when the stream must end at once: with its reason, where that is a ProxyError.
 */
export function pump(
  upstream: ReadableStream<Uint8Array>,
  chain: Chain,
  limits: PumpLimits,
  gone: AbortSignal,
  stopping: AbortSignal[],
): Pumped {
  const reader = upstream.getReader();
  const begun = Promise.withResolvers<void>();
  const startedAt = performance.now();
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let heardAt = startedAt;
  let beatAt = startedAt;
  let reading = false;
  let over = false;

  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
    },
    // Reads until there is something for the client, and no further than the client does.
    async pull() {
      while (!over) {
        let step: Awaited<ReturnType<typeof reader.read>>;
        reading = true;
        try {
          step = await reader.read();
        } catch (cause) {
          if (gone.aborted) end("client-gone");
          else breakOff(new ProxyError("upstream", brokenSentence, { cause, code: "upstream_disconnected" }));
          return;
        } finally {
          reading = false;
        }
        if (over) return;
        try {
          if (step.value) chain.feed.push(step.value);
          else chain.feed.end();
        } catch (thrown) {
          breakOff(asProxyError(thrown));
          return;
        }
        const sent = send();
        if (step.done || chain.isOver()) end("complete");
        if (sent) return;
      }
    },
    cancel: () => end("client-gone"),
  });
  const watch = setInterval(watchSilence, Math.min(limits.beat, limits.idle) / 4);
  for (const signal of stopping) signal.addEventListener("abort", stop, { once: true });
  const stopped = stopping.find(({ aborted }) => aborted);
  if (stopped) stop({ target: stopped });
  return { begun: begun.promise, body };

  function send(): boolean {
    const output = chain.take();
    if (!output) return false;
    heardAt = performance.now();
    controller.enqueue(output);
    begun.resolve();
    return true;
  }

  function end(how: "complete" | "failed" | "client-gone"): void {
    if (over) return;
    over = true;
    clearInterval(watch);
    for (const signal of stopping) signal.removeEventListener("abort", stop);
    reader.cancel().catch(() => {}); // a body that has ended, or broke, cannot be cancelled: nothing is lost
    chain.ended(how);
    begun.resolve();
    if (how !== "client-gone") controller.close();
  }

  function breakOff(error: ProxyError): void {
    if (over) return;
    chain.fail(error);
    send();
    end("failed");
  }

  function watchSilence(): void {
    const now = performance.now();
    if (now - startedAt > limits.total) {
      breakOff(new ProxyError("timeout", `The reply took over ${seconds(limits.total)}; it was ended here.`));
      return;
    }
    // A client that does not read keeps us from reading: that is no silence of the upstream's.
    if (!reading) return;
    if (now - heardAt > limits.idle) {
      breakOff(new ProxyError("timeout", `The upstream sent nothing for ${seconds(limits.idle)}; it was given up.`));
      return;
    }
    if (now - Math.max(heardAt, beatAt) < limits.beat) return;
    beatAt = now;
    begun.resolve();
    if ((controller.desiredSize ?? 0) <= 0) return;
    chain.beat();
    const output = chain.take();
    if (output) controller.enqueue(output);
  }

  function stop({ target }: Pick<Event, "target">): void {
    const { reason } = target as AbortSignal;
    const down = new ProxyError("no_account", "dragoman is shutting down; send the request again in a moment.");
    if (gone.aborted) end("client-gone");
    else breakOff(reason instanceof ProxyError ? reason : down);
  }
}

const brokenSentence =
  "The upstream broke the connection before its reply was complete; nothing after this point is known.";

const seconds = (ms: number) => `${Math.round(ms / 100) / 10} s`;
