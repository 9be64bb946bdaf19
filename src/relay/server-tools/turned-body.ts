/** The bodies of several answers of the upstream as one, with what happens between them. */
import { asProxyError } from "../../errors";
import type { ResponseBody } from "../../net/out/body";
import type { Sink } from "../../net/stream/stream";

/** One answer: its bytes, and where they go. */
export interface UpstreamTurn {
  body: ResponseBody;
  bytes: Sink<Uint8Array>;
}

interface TurnedBodyOptions {
  first: UpstreamTurn;
  /** The present answer has ended, and the reply goes on. */
  isWaiting(): boolean;
  /** Does the next thing; returns an answer that is to be read next. @throws ProxyError if the reply cannot go on. */
  advance(): Promise<UpstreamTurn | undefined>;
  /** Aborts when the reply is stopped. */
  signal: AbortSignal;
}

const nothing = new Uint8Array(0);

export function turnedBody(options: TurnedBodyOptions): UpstreamTurn {
  const { isWaiting, signal: stopped } = options;
  const controller = new AbortController();
  const { signal } = controller;
  let turn = options.first;
  let isEnded = false;
  const stop = () => controller.abort(stopped.reason);
  /** An answer that was read to its end cannot end the reply any more. */
  const follow = ({ body }: UpstreamTurn) => {
    const abort = () => {
      if (turn.body === body && !isEnded) controller.abort(body.signal.reason);
    };
    if (body.signal.aborted) abort();
    else body.signal.addEventListener("abort", abort, { once: true });
  };
  const endTurn = () => {
    if (isEnded) return;
    isEnded = true;
    turn.body.cancel();
    turn.bytes.end();
  };
  follow(turn);
  if (stopped.aborted) stop();
  else stopped.addEventListener("abort", stop, { once: true });

  const advance = async () => {
    if (!isEnded) {
      isEnded = true;
      turn.body.cancel();
    }
    const next = await options.advance();
    if (!next) return;
    turn = next;
    isEnded = false;
    follow(next);
  };

  return {
    body: {
      who: options.first.body.who,
      signal,
      async read() {
        if (signal.aborted) throw signal.reason;
        if (!isWaiting()) {
          const piece = await turn.body.read();
          if (piece) return piece;
          endTurn();
          if (!isWaiting()) return undefined;
        }
        try {
          await advance();
        } catch (thrown) {
          const error = signal.aborted ? signal.reason : asProxyError(thrown);
          // For those who wait for no `read`: the error is that of the reply.
          controller.abort(error);
          throw error;
        }
        // What was sent meanwhile goes to the client now.
        return nothing;
      },
      cancel() {
        stopped.removeEventListener("abort", stop);
        turn.body.cancel();
        controller.abort();
      },
    },
    bytes: {
      push(piece) {
        if (!isEnded) turn.bytes.push(piece);
      },
      end: endTurn,
    },
  };
}
