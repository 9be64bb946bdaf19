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
  /**
   * All of it as text, in place of `read`; missing where it is no small body of a known length. A reader costs more than all
   * else that is done with such a body.
   * @param max Bytes.
   * @throws As `read`, and ProxyError `upstream` when it is larger.
   */
  text?(max: number): Promise<string>;
  /** Aborts when the call ends before its body does, by one of its limits or by its caller; its reason is what `read` throws. */
  readonly signal: AbortSignal;
  /** Stops reading and closes the connection. */
  cancel(): void;
  /**
   * Stops reading what has said all: the end of the body may be on its way, and then the connection serves the next call
   * (TCP and TLS need not be begun anew). After a second it is closed.
   */
  release(): void;
}

/**
 * @param source Fetch's response, whose body is null if it has none.
 * @param url For messages that name the proxy on the way.
 */
export function openBody(source: Response, clock: CallClock, who: string, url: string): ResponseBody {
  return isSmall(source) ? new SmallBody(source, clock, who, url) : new OpenBody(source, clock, who, url);
}

/** Bytes of a body that comes in one piece, or nearly: the limit for silence holds for all of it. */
const maxAtOnce = 64 * 1024;

function isSmall({ headers }: Response): boolean {
  const length = headers.get("content-length");
  return length !== null && Number(length) <= maxAtOnce && !headers.has("content-encoding");
}

const readerOf = ({ body }: Response) => body?.getReader();

/** Milliseconds that the end of a body may take after all was said. */
const endWithin = 1000;

async function readOut(reader: NonNullable<ReturnType<typeof readerOf>>): Promise<void> {
  const timer = setTimeout(() => reader.cancel().catch(() => {}), endWithin);
  try {
    while (!(await reader.read()).done);
  } catch {
    // It broke off, and nothing was left to be said.
  } finally {
    clearTimeout(timer);
  }
}

class OpenBody implements ResponseBody {
  readonly signal: AbortSignal;
  protected readonly source: Response;
  #reader: ReturnType<typeof readerOf>;
  #isEnded = false;

  constructor(
    source: Response,
    readonly clock: CallClock,
    readonly who: string,
    readonly url: string,
  ) {
    this.source = source;
    this.signal = clock.signal;
  }

  async read(): Promise<Uint8Array | undefined> {
    const { clock } = this;
    clock.awaits();
    try {
      this.#reader ??= this.#open();
      const value = (await this.#reader?.read())?.value;
      if (value !== undefined) return value;
      if (this.signal.aborted) throw this.signal.reason;
      this.end();
      return undefined;
    } catch (thrown) {
      this.end();
      throw this.failure(thrown);
    } finally {
      clock.heard();
    }
  }

  #open() {
    const abort = () => {
      this.clock.stop();
      this.#disconnect();
    };
    if (this.signal.aborted) throw this.signal.reason;
    this.signal.addEventListener("abort", abort);
    return readerOf(this.source);
  }

  protected failure(thrown: unknown): unknown {
    if (thrown instanceof ProxyError) return thrown;
    return this.signal.aborted ? this.signal.reason : networkError(thrown, this.url, this.who);
  }

  cancel(): void {
    if (this.#isEnded) return;
    this.end();
    this.#disconnect();
  }

  release(): void {
    if (this.#isEnded) return;
    this.end();
    const reader = this.#reader ?? readerOf(this.source);
    if (reader) void readOut(reader);
  }

  protected end(): void {
    this.#isEnded = true;
    this.clock.stop();
  }

  #disconnect(): void {
    (this.#reader ?? this.source.body)?.cancel().catch(() => {}); // a broken stream cannot be cancelled
  }
}

/** A body that comes in one piece, or nearly. */
class SmallBody extends OpenBody {
  /** The signal of the call ends this too. */
  async text(max: number): Promise<string> {
    this.clock.awaits();
    try {
      const text = await this.source.text();
      if (text.length > max) throw tooLarge(this, max);
      return text;
    } catch (thrown) {
      throw this.failure(thrown);
    } finally {
      this.end();
    }
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
export const readText = (response: Pick<CallResponse, "body">, max: number): Promise<string> =>
  response.body.text?.(max) ?? readBody(response, max).then((bytes) => utf8.decode(bytes));

const utf8 = new TextDecoder();

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
