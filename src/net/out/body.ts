/** Response bodies. Every one is read here, under the time limits of its call. */
import { ProxyError } from "../../errors";
import type { CallClock } from "./clock";
import { networkError } from "./network-errors";

/** The response to an outgoing call. */
export interface CallResponse {
  readonly status: number;
  /** 200-299 */
  readonly ok: boolean;
  readonly headers: Headers;
  readonly body: ResponseBody;
  /** It came over a WebSocket. */
  readonly overSocket?: true;
}

export interface ResponseBody {
  /** Who sends it, for messages: `GitHub Copilot`. */
  readonly who: string;
  /**
   * The next bytes; undefined at the end.
   * @throws ProxyError `timeout` when a limit of the call has passed, `upstream` when it breaks off; or the reason of the
   * caller's own signal.
   */
  read(): Promise<Uint8Array | undefined>;
  /** Aborts when the call ends before its body does, by one of its limits or by its caller; its reason is what `read` throws. */
  readonly signal: AbortSignal;
  /** Stops reading and closes the connection. */
  cancel(): void;
}

/**
 * @param stream Null for a response without a body.
 * @param url For messages that name the proxy on the way.
 */
export function openBody(
  stream: ReadableStream<Uint8Array> | null,
  clock: CallClock,
  who: string,
  url: string,
): ResponseBody {
  return new OpenBody(stream, clock, who, url);
}

const readerOf = (stream: ReadableStream<Uint8Array> | null) => stream?.getReader();

class OpenBody implements ResponseBody {
  readonly signal: AbortSignal;
  #reader: ReturnType<typeof readerOf>;
  #isEnded = false;

  constructor(
    readonly stream: ReadableStream<Uint8Array> | null,
    readonly clock: CallClock,
    readonly who: string,
    readonly url: string,
  ) {
    this.signal = clock.signal;
    this.signal.addEventListener(
      "abort",
      () => {
        clock.stop();
        this.#disconnect();
      },
      { once: true },
    );
  }

  async read(): Promise<Uint8Array | undefined> {
    const { clock } = this;
    clock.awaits();
    try {
      this.#reader ??= readerOf(this.stream);
      const value = (await this.#reader?.read())?.value;
      if (value !== undefined) return value;
      if (this.signal.aborted) throw this.signal.reason;
      this.#end();
      return undefined;
    } catch (thrown) {
      this.#end();
      throw this.signal.aborted ? this.signal.reason : networkError(thrown, this.url, this.who);
    } finally {
      clock.heard();
    }
  }

  cancel(): void {
    if (this.#isEnded) return;
    this.#end();
    this.#disconnect();
  }

  #end(): void {
    this.#isEnded = true;
    this.clock.stop();
  }

  #disconnect(): void {
    (this.#reader ?? this.stream)?.cancel().catch(() => {}); // a broken stream cannot be cancelled
  }
}

/**
 * A body piece by piece, up to a limit. Leaving the loop cancels the body.
 * @param max Bytes.
 * @throws As {@link ResponseBody.read}, and ProxyError `upstream` when it is larger.
 */
export async function* piecesOf(body: ResponseBody, max: number): AsyncGenerator<Uint8Array, void> {
  let size = 0;
  try {
    for (let piece = await body.read(); piece; piece = await body.read()) {
      size += piece.length;
      if (size > max) throw tooLarge(body, max);
      yield piece;
    }
  } finally {
    body.cancel();
  }
}

const tooLarge = ({ who }: ResponseBody, max: number) =>
  new ProxyError("upstream", `${who} sent an answer of over ${Math.round(max / 1024 / 1024)} MiB.`);

/**
 * Reads pieces until the end, or until there are more bytes than `max`; then the body is cancelled.
 * @returns The bytes that were read.
 */
async function gather(body: ResponseBody, max: number, pieces: Uint8Array[]): Promise<number> {
  let size = 0;
  try {
    for (let piece = await body.read(); piece; piece = size > max ? undefined : await body.read()) {
      pieces.push(piece);
      size += piece.length;
    }
  } finally {
    body.cancel();
  }
  return size;
}

/**
 * A whole body, up to a limit. Most come in one piece, for which {@link piecesOf} would take several turns more.
 * @param max Bytes.
 * @throws As {@link piecesOf}.
 */
export async function readBody({ body }: Pick<CallResponse, "body">, max: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  if ((await gather(body, max, pieces)) > max) throw tooLarge(body, max);
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/** {@link readBody} as text. */
export async function readText(response: Pick<CallResponse, "body">, max: number): Promise<string> {
  return Buffer.from(await readBody(response, max)).toString();
}

/**
 * The first bytes of a response as text: enough for an error message, however large or slow the response is.
 * @param max Bytes.
 * @param timeoutMs What has arrived by then is returned.
 */
export async function readStart({ body }: Pick<CallResponse, "body">, max: number, timeoutMs = 5000): Promise<string> {
  const pieces: Uint8Array[] = [];
  const timer = setTimeout(() => body.cancel(), timeoutMs);
  await gather(body, max, pieces).catch(() => {}); // A body that breaks off still has a beginning.
  clearTimeout(timer);
  return Buffer.concat(pieces).subarray(0, max).toString();
}
