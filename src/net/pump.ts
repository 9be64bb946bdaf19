/**
 * Pumps an upstream's body through a chain of stages to a client. Back-pressure, the client's hang-up, signs of life and a
 * stream that breaks or stalls are judged here, so that no stage has to; what a stall is says the clock of the call.
 */
import { asProxyError, ProxyError } from "../errors";
import type { ResponseBody } from "./body";
import type { Sink } from "./stream";

export interface Chain {
  /** Where the upstream's bytes go in. */
  feed: Sink<Uint8Array>;
  /** What the chain has made for the client since the last call; undefined when nothing. */
  take(): Uint8Array | undefined;
  /** The reply's terminal event is out: whatever the upstream still sends is of no use. */
  isOver(): boolean;
  /** Nothing has gone to the client for a while: put something harmless into the output. */
  keepAlive(): void;
  /** Something broke: put the error into the output. Does nothing when the terminal event is out. */
  fail(error: ProxyError): void;
  /** Called once, when nothing more will be sent. */
  ended(how: "complete" | "failed" | "client-gone"): void;
}

export interface Pumped {
  /** Settles when the first output is there, when the upstream has ended, or after `beat` ms without any. */
  begun: Promise<void>;
  body: ReadableStream<Uint8Array>;
}

/**
 * @param beat Milliseconds without output after which the client gets a sign of life.
 * @param gone Aborts when the client hangs up; the upstream call must be tied to it as well.
 * @param down Aborts when the process stops: the stream must end at once.
 */
export function pump(upstream: ResponseBody, chain: Chain, beat: number, gone: AbortSignal, down: AbortSignal): Pumped {
  const begun = Promise.withResolvers<void>();
  const stopping = [upstream.signal, down];
  let controller: ReadableStreamDefaultController<Uint8Array>;
  /** When the client was sent something. */
  let sentAt = performance.now();
  let reading = false;
  let over = false;

  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
    },
    // Reads until there is something for the client, and no further than the client does.
    async pull() {
      while (!over) {
        let piece: Uint8Array | undefined;
        reading = true;
        try {
          piece = await upstream.read();
        } catch (cause) {
          if (gone.aborted) end("client-gone");
          else breakOff(new ProxyError("upstream", brokenSentence, { cause, code: "upstream_disconnected" }));
          return;
        } finally {
          reading = false;
        }
        if (over) return;
        try {
          if (piece) chain.feed.push(piece);
          else chain.feed.end();
        } catch (thrown) {
          breakOff(asProxyError(thrown));
          return;
        }
        const sent = send();
        if (!piece || chain.isOver()) end("complete");
        if (sent) return;
      }
    },
    cancel: () => end("client-gone"),
  });
  const watch = setInterval(giveSigns, beat / 4);
  for (const signal of stopping) signal.addEventListener("abort", stop, { once: true });
  const stopped = stopping.find(({ aborted }) => aborted);
  if (stopped) stop({ target: stopped });
  return { begun: begun.promise, body };

  function send(): boolean {
    const output = chain.take();
    if (!output) return false;
    sentAt = performance.now();
    controller.enqueue(output);
    begun.resolve();
    return true;
  }

  function end(how: "complete" | "failed" | "client-gone"): void {
    if (over) return;
    over = true;
    clearInterval(watch);
    for (const signal of stopping) signal.removeEventListener("abort", stop);
    upstream.cancel();
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

  function giveSigns(): void {
    const now = performance.now();
    // A client that does not read keeps us from reading, and wants no more.
    if (!reading || now - sentAt < beat) return;
    sentAt = now;
    begun.resolve();
    if ((controller.desiredSize ?? 0) <= 0) return;
    chain.keepAlive();
    const output = chain.take();
    if (output) controller.enqueue(output);
  }

  function stop({ target }: Pick<Event, "target">): void {
    const { reason } = target as AbortSignal;
    const shuttingDown = new ProxyError("no_account", "dragoman is shutting down; send the request again in a moment.");
    if (gone.aborted) end("client-gone");
    else breakOff(reason instanceof ProxyError ? reason : shuttingDown);
  }
}

const brokenSentence =
  "The upstream broke the connection before its reply was complete; nothing after this point is known.";
