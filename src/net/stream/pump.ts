/**
 * Pumps an upstream's body through a chain of stages to a client. Back-pressure, keep-alives, the client's hang-up and a
 * stream that breaks or stalls are handled here, so that no stage has to. `clock.ts` decides what a stall is.
 */
import { asProxyError, ProxyError } from "../../errors";
import type { ResponseBody } from "../out/body";
import type { Sink } from "./stream";

export interface Chain {
  /** Where the upstream's bytes go in. */
  feed: Sink<Uint8Array>;
  /** What the chain has made for the client since the last call; undefined when nothing. */
  take(): Uint8Array | undefined;
  /** The reply's last event was sent: whatever the upstream still sends is ignored. */
  isOver(): boolean;
  /** Puts a keep-alive into the output: nothing was sent to the client for a while. */
  keepAlive(): void;
  /** Puts an error into the output. Does nothing when the reply's last event was sent. */
  fail(error: ProxyError): void;
  /** Called once, when nothing more will be sent. */
  ended(how: "complete" | "failed" | "client-gone"): void;
}

interface Pumped {
  /** Settles when the first output is there, when the upstream has ended, or after `keepAliveMs` without any. */
  begun: Promise<void>;
  body: ReadableStream<Uint8Array>;
}

interface PumpOptions {
  /** Milliseconds without output after which the client is sent a keep-alive. */
  keepAliveMs: number;
  /** Aborts when the client hangs up; the upstream call must be tied to it as well. */
  clientGone: AbortSignal;
  /** Aborts when the process stops: the stream then ends at once. */
  stopping: AbortSignal;
}

export function pump(upstream: ResponseBody, chain: Chain, options: PumpOptions): Pumped {
  const { keepAliveMs, clientGone } = options;
  const begun = Promise.withResolvers<void>();
  const signals = [upstream.signal, options.stopping];
  let controller: ReadableStreamDefaultController<Uint8Array>;
  /** When the client was last sent something. */
  let sentAt = performance.now();
  let reading = false;
  let isEnded = false;

  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
    },
    // Reads until there is output for the client, and only when the client reads.
    async pull() {
      while (!isEnded) {
        let piece: Uint8Array | undefined;
        reading = true;
        try {
          piece = await upstream.read();
        } catch (cause) {
          if (clientGone.aborted) end("client-gone");
          else breakOff(new ProxyError("upstream", brokenSentence, { cause, code: "upstream_disconnected" }));
          return;
        } finally {
          reading = false;
        }
        if (isEnded) return;
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
  const watch = setInterval(keepAlive, keepAliveMs / 4);
  for (const signal of signals) signal.addEventListener("abort", stop, { once: true });
  const aborted = signals.find(({ aborted }) => aborted);
  if (aborted) stop({ target: aborted });
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
    if (isEnded) return;
    isEnded = true;
    clearInterval(watch);
    for (const signal of signals) signal.removeEventListener("abort", stop);
    upstream.cancel();
    chain.ended(how);
    begun.resolve();
    if (how !== "client-gone") controller.close();
  }

  function breakOff(error: ProxyError): void {
    if (isEnded) return;
    chain.fail(error);
    send();
    end("failed");
  }

  function keepAlive(): void {
    const now = performance.now();
    // While the client does not read, nothing is read from the upstream, and the client needs no keep-alive.
    if (!reading || now - sentAt < keepAliveMs) return;
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
    if (clientGone.aborted) end("client-gone");
    else breakOff(reason instanceof ProxyError ? reason : shuttingDown);
  }
}

const brokenSentence =
  "The upstream broke the connection before its reply was complete; nothing after this point is known.";
