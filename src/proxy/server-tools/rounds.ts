/** The bodies of several answers of the upstream as one, with what happens between them. */
import { asProxyError } from "../../lib/errors";
import type { ResponseBody } from "../../lib/net/out/body";
import type { Sink } from "../../lib/net/stream/stream";

/** One answer: its bytes, and where they go. */
export interface Round {
  body: ResponseBody;
  bytes: Sink<Uint8Array>;
}

interface RoundOptions {
  first: Round;
  /** The present answer has ended, and the reply goes on. */
  isWaiting(): boolean;
  /** Does the next thing; returns an answer that is to be read next. @throws ProxyError if the reply cannot go on. */
  advance(): Promise<Round | undefined>;
  /** Aborts when the reply is stopped. */
  signal: AbortSignal;
}

export function joinedBody(options: RoundOptions): Round {
  const rounds = new Rounds(options);
  return { body: rounds, bytes: rounds };
}

const nothing = new Uint8Array(0);

class Rounds implements ResponseBody, Sink<Uint8Array> {
  readonly who: string;
  readonly signal: AbortSignal;
  readonly #options: RoundOptions;
  readonly #controller = new AbortController();
  #round: Round;
  #isEnded = false;

  constructor(options: RoundOptions) {
    this.#options = options;
    this.#round = options.first;
    this.who = options.first.body.who;
    this.signal = this.#controller.signal;
    this.#follow(options.first);
    if (options.signal.aborted) this.#stop();
    else options.signal.addEventListener("abort", this.#stop, { once: true });
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.signal.aborted) throw this.signal.reason;
    if (!this.#options.isWaiting()) {
      const piece = await this.#round.body.read();
      if (piece) return piece;
      this.end();
      if (!this.#options.isWaiting()) return undefined;
    }
    try {
      await this.#advance();
    } catch (thrown) {
      const error = this.signal.aborted ? this.signal.reason : asProxyError(thrown);
      // Whoever follows the signal learns it too.
      this.#controller.abort(error);
      throw error;
    }
    // What was sent meanwhile goes to the client now.
    return nothing;
  }

  cancel(): void {
    this.#round.body.cancel();
    this.release();
  }

  release(): void {
    this.#options.signal.removeEventListener("abort", this.#stop);
    this.#round.body.release();
    this.#controller.abort();
  }

  push(piece: Uint8Array): void {
    if (!this.#isEnded) this.#round.bytes.push(piece);
  }

  /** Ends the present answer. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#round.body.release();
    this.#round.bytes.end();
  }

  readonly #stop = (): void => this.#controller.abort(this.#options.signal.reason);

  /** Ends the reply where this answer breaks off, but not any more once it was read to its end. */
  #follow({ body }: Round): void {
    const abort = () => {
      if (this.#round.body === body && !this.#isEnded) this.#controller.abort(body.signal.reason);
    };
    if (body.signal.aborted) abort();
    else body.signal.addEventListener("abort", abort, { once: true });
  }

  async #advance(): Promise<void> {
    if (!this.#isEnded) {
      this.#isEnded = true;
      this.#round.body.release();
    }
    const next = await this.#options.advance();
    if (!next) return;
    this.#round = next;
    this.#isEnded = false;
    this.#follow(next);
  }
}
