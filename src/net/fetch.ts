/** Calling out: own time limits, no redirects, no proxy towards this machine, and network failures in words. */
import { codeOf, ProxyError } from "../errors";
import { isLoopbackUrl } from "./proxy";
import { silent, tunnelStatus, unreachable } from "./unreachable";

export interface OutgoingCall {
  method: string;
  headers: Record<string, string>;
  body?: string | Uint8Array;
  /** Ends the call, before or after the answer's headers. It lives no longer than what the call is for. */
  signal?: AbortSignal;
  /** Milliseconds until the answer's headers must be here. */
  headersWithin: number;
  /** Who is called, for sentences: `GitHub Copilot`. */
  who: string;
  /** Told when the call is made a second time, because the first was provably not processed. */
  retried?: (why: string) => void;
}

/**
 * One call to a service. A connection that could not be made, or that broke in the first 250 ms (a kept one the other
 * side was just closing), is tried once more; nothing else is.
 * @throws ProxyError `upstream` (unreachable, redirect), `timeout` (silent), or the signal's own reason.
 */
export async function callOut(url: string, call: OutgoingCall): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const sentAt = performance.now();
    try {
      return await fetchOnce(url, call);
    } catch (thrown) {
      if (call.signal?.aborted || thrown instanceof ProxyError) throw thrown;
      const code = codeOf(thrown);
      const unprocessed = neverConnected.has(code) || (code === "ECONNRESET" && performance.now() - sentAt < 250);
      // A proxy that declines will decline again, and may count wrong passwords.
      const declined = (tunnelStatus(thrown) ?? 500) < 500;
      if (!unprocessed || declined || attempt === 2) throw unreachable(thrown, url, call.who);
      call.retried?.(code);
      await Bun.sleep(50 + Math.random() * 200);
    }
  }
}

async function fetchOnce(url: string, call: OutgoingCall): Promise<Response> {
  const { signal } = call;
  const ending = new AbortController();
  // `AbortSignal.any` costs several times as much.
  const end = () => ending.abort(signal?.reason);
  if (signal?.aborted) end();
  else signal?.addEventListener("abort", end, { once: true });
  const timer = setTimeout(end, call.headersWithin);
  try {
    const response = await fetch(url, {
      method: call.method,
      headers: call.headers,
      body: call.body,
      signal: ending.signal,
      redirect: "manual",
      // Bun gives up after minutes of silence by itself, and would send calls to this machine through HTTP_PROXY.
      timeout: false,
      ...(isLoopbackUrl(url) ? { proxy: false } : {}),
      ...(url.startsWith("https:") ? { tls: { rejectUnauthorized: true } } : {}),
    } as RequestInit);
    if (response.status >= 300 && response.status < 400) {
      discard(response.body);
      throw new ProxyError("upstream", `${call.who} answered with a redirect, which is not followed.`);
    }
    // What HTTP does not know could not be passed on either.
    if (response.status > 599) {
      discard(response.body);
      throw new ProxyError("upstream", `${call.who} answered with status ${response.status}, which means nothing.`);
    }
    return response;
  } catch (thrown) {
    if (ending.signal.aborted && !signal?.aborted) throw silent(url, call.who, call.headersWithin);
    throw thrown;
  } finally {
    clearTimeout(timer);
  }
}

/** Nothing more is read of it. One that broke cannot be cancelled, and there is nothing to lose. */
export function discard(body: Pick<ReadableStream, "cancel"> | null | undefined): void {
  body?.cancel().catch(() => {});
}

/**
 * A whole body, unless it is larger than it may be.
 * @param most Bytes.
 * @throws ProxyError `upstream` when it is larger or breaks off.
 */
export async function readBody(response: Response, most: number, who: string): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const told = Number(response.headers.get("content-length") ?? Number.NaN);
  try {
    // Its length is known, and is no more than it says.
    if (told <= most && !response.headers.has("content-encoding")) return await response.bytes();
    for await (const piece of response.body ?? []) {
      size += piece.length;
      if (size > most)
        throw new ProxyError("upstream", `${who} sent an answer of over ${Math.round(most / 1024 / 1024)} MiB.`);
      pieces.push(piece);
    }
  } catch (thrown) {
    if (thrown instanceof ProxyError || (thrown instanceof Error && thrown.name === "AbortError")) throw thrown;
    throw unreachable(thrown, response.url, who);
  }
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/**
 * The first bytes of an answer as text: enough for an error's message, however much is sent and however slowly.
 * @param most Bytes.
 * @param within Milliseconds; what is there by then is what counts.
 */
export async function readStart(response: Response, most: number, within = 5000): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  const timer = setTimeout(() => discard(reader), within);
  try {
    while (reader && size < most) {
      const { done, value } = await reader.read();
      if (done) break;
      pieces.push(value);
      size += value.length;
    }
    discard(reader);
  } catch {
    // A body that breaks off still has its beginning.
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(pieces).subarray(0, most).toString();
}

const neverConnected = new Set([
  "ECONNREFUSED",
  "ConnectionRefused",
  "FailedToOpenSocket",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ERR_PROXY_TUNNEL",
]);
