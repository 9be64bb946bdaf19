/**
 * Pumps an upstream's body through a chain of stages to a client. Back-pressure, keep-alives, the client's hang-up and a
 * stream that breaks or stalls are handled here, so that no stage has to. `clock.ts` decides what a stall is.
 */
import { asProxyError, ProxyError } from "../../errors";
import type { ResponseBody } from "../out/body";
import type { Sink } from "./stream";

type HowEnded = "complete" | "failed" | "client-gone";

export interface StageChain {
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
  ended(how: HowEnded): void;
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

export function pump(upstream: ResponseBody, chain: StageChain, options: PumpOptions): Pumped {
  const running = new Pump(upstream, chain, options);
  return { begun: running.begun, body: new ReadableStream(running) };
}

/** The source of the client's stream, and what listens to the signals that end it. */
class Pump {
  readonly begun: Promise<void>;
  readonly #begin: () => void;
  readonly #upstream: ResponseBody;
  readonly #chain: StageChain;
  readonly #options: PumpOptions;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #watch: Timer | undefined;
  /** When the client was last sent something. */
  #sentAt = performance.now();
  #isReading = false;
  #isEnded = false;

  constructor(upstream: ResponseBody, chain: StageChain, options: PumpOptions) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.begun = promise;
    this.#begin = resolve;
    this.#upstream = upstream;
    this.#chain = chain;
    this.#options = options;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    this.#watch = setInterval(Pump.#keepAlive, this.#options.keepAliveMs / 4, this);
    const signals = [this.#upstream.signal, this.#options.stopping];
    for (const signal of signals) signal.addEventListener("abort", this);
    const target = signals.find(({ aborted }) => aborted);
    if (target) this.handleEvent({ target });
  }

  /** Reads until there is output for the client, and only when the client reads. */
  async pull(): Promise<void> {
    while (!this.#isEnded) {
      let piece: Uint8Array | undefined;
      this.#isReading = true;
      try {
        piece = await this.#upstream.read();
      } catch (cause) {
        if (this.#options.clientGone.aborted) this.#end("client-gone");
        else this.#breakOff(new ProxyError("upstream", brokenSentence, { cause, code: "upstream_disconnected" }));
        return;
      } finally {
        this.#isReading = false;
      }
      if (this.#isEnded) return;
      try {
        if (piece) this.#chain.feed.push(piece);
        else this.#chain.feed.end();
      } catch (thrown) {
        this.#breakOff(asProxyError(thrown));
        return;
      }
      const sent = this.#send();
      if (!piece || this.#chain.isOver()) this.#end("complete");
      if (sent) return;
    }
  }

  cancel(): void {
    this.#end("client-gone");
  }

  handleEvent({ target }: Pick<Event, "target">): void {
    const { reason } = target as AbortSignal;
    const shuttingDown = new ProxyError("no_account", "dragoman is shutting down; send the request again in a moment.");
    if (this.#options.clientGone.aborted) this.#end("client-gone");
    else this.#breakOff(reason instanceof ProxyError ? reason : shuttingDown);
  }

  #send(): boolean {
    const output = this.#chain.take();
    if (!output) return false;
    this.#sentAt = performance.now();
    this.#controller.enqueue(output);
    this.#begin();
    return true;
  }

  #end(how: HowEnded): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearInterval(this.#watch);
    for (const signal of [this.#upstream.signal, this.#options.stopping]) signal.removeEventListener("abort", this);
    if (how === "complete") this.#upstream.release();
    else this.#upstream.cancel();
    this.#chain.ended(how);
    this.#begin();
    if (how !== "client-gone") this.#controller.close();
  }

  #breakOff(error: ProxyError): void {
    if (this.#isEnded) return;
    this.#chain.fail(error);
    this.#send();
    this.#end("failed");
  }

  static #keepAlive(pump: Pump): void {
    const now = performance.now();
    // While the client does not read, nothing is read from the upstream, and the client needs no keep-alive.
    if (!pump.#isReading || now - pump.#sentAt < pump.#options.keepAliveMs) return;
    pump.#sentAt = now;
    pump.#begin();
    if ((pump.#controller.desiredSize ?? 0) <= 0) return;
    pump.#chain.keepAlive();
    const output = pump.#chain.take();
    if (output) pump.#controller.enqueue(output);
  }
}

const brokenSentence =
  "The upstream broke the connection before its reply was complete; nothing after this point is known.";
