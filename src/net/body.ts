/** The body of an answer, read under the clock of its call: nobody reads one in another way. */
import { ProxyError } from "../errors";
import type { CallClock } from "./clock";
import { networkError } from "./network-errors";

/** What came back from a call out. */
export interface CallResponse {
  readonly status: number;
  /** 200-299 */
  readonly ok: boolean;
  readonly headers: Headers;
  readonly body: ResponseBody;
}

export interface ResponseBody {
  /** Who sends it, for sentences. */
  readonly who: string;
  /**
   * The next bytes; undefined at the end.
   * @throws ProxyError `timeout` when a limit of the call has passed, `upstream` when it breaks off; or the reason of the
   * caller's own signal.
   */
  read(): Promise<Uint8Array | undefined>;
  /** Aborts when the call is ended before its body: by one of its limits or by its caller, with what `read` throws. */
  readonly signal: AbortSignal;
  /** Nothing more is read of it, and the connection is let go. */
  cancel(): void;
}

/**
 * @param stream Null for an answer without a body.
 * @param url For sentences about the way there.
 */
export function openBody(
  stream: ReadableStream<Uint8Array> | null,
  clock: CallClock,
  who: string,
  url: string,
): ResponseBody {
  const open = () => stream?.getReader();
  let reader: ReturnType<typeof open>;
  let over = false;
  const end = () => {
    over = true;
    clock.stop();
  };
  const letGo = () => {
    (reader ?? stream)?.cancel().catch(() => {}); // one that broke cannot be cancelled, and there is nothing to lose
  };
  clock.signal.addEventListener("abort", letGo, { once: true });
  return {
    who,
    signal: clock.signal,
    async read() {
      clock.awaits();
      try {
        reader ??= open();
        const value = (await reader?.read())?.value;
        if (value !== undefined) return value;
        if (clock.signal.aborted) throw clock.signal.reason;
        end();
        return undefined;
      } catch (thrown) {
        end();
        throw clock.signal.aborted ? clock.signal.reason : networkError(thrown, url, who);
      } finally {
        clock.heard();
      }
    },
    cancel() {
      if (over) return;
      end();
      letGo();
    },
  };
}

/**
 * A body piece by piece, unless it is larger than it may be; who stops reading lets it go.
 * @param max Bytes.
 * @throws As {@link ResponseBody.read}, and ProxyError `upstream` when it is larger.
 */
export async function* piecesOf(body: ResponseBody, max: number): AsyncGenerator<Uint8Array, void> {
  let size = 0;
  try {
    for (let piece = await body.read(); piece; piece = await body.read()) {
      size += piece.length;
      if (size > max)
        throw new ProxyError("upstream", `${body.who} sent an answer of over ${Math.round(max / 1024 / 1024)} MiB.`);
      yield piece;
    }
  } finally {
    body.cancel();
  }
}

/**
 * A whole body, unless it is larger than it may be.
 * @param max Bytes.
 * @throws As {@link piecesOf}.
 */
export async function readBody({ body }: Pick<CallResponse, "body">, max: number): Promise<Uint8Array> {
  const pieces = await Array.fromAsync(piecesOf(body, max));
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/** The same as text. */
export async function readText(response: Pick<CallResponse, "body">, max: number): Promise<string> {
  return Buffer.from(await readBody(response, max)).toString();
}

/**
 * The first bytes of an answer as text: enough for an error's message, however much is sent and however slowly.
 * @param max Bytes.
 * @param timeoutMs Milliseconds; what is there by then is what counts.
 */
export async function readStart({ body }: Pick<CallResponse, "body">, max: number, timeoutMs = 5000): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const timer = setTimeout(body.cancel, timeoutMs);
  try {
    for (let piece = await body.read(); piece && size < max; piece = await body.read()) {
      pieces.push(piece);
      size += piece.length;
    }
  } catch {
    // A body that breaks off still has its beginning.
  } finally {
    clearTimeout(timer);
    body.cancel();
  }
  return Buffer.concat(pieces).subarray(0, max).toString();
}
