/** Calling out: own time limits, no redirects, no proxy towards this machine, and network failures in words. */
import { ProxyError } from "../errors";

export interface OutgoingCall {
  method: string;
  headers: Record<string, string>;
  body?: string | Uint8Array;
  /** Ends the call, before or after the answer's headers. */
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
      if (!unprocessed || attempt === 2)
        throw networkError(
          thrown,
          /REFUSED|FailedToOpen/i.test(code) && goesThroughProxy(url) ? "PROXY" : code,
          call.who,
        );
      call.retried?.(code);
      await Bun.sleep(50 + Math.random() * 200);
    }
  }
}

async function fetchOnce(url: string, call: OutgoingCall): Promise<Response> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), call.headersWithin);
  try {
    const response = await fetch(url, {
      method: call.method,
      headers: call.headers,
      body: call.body,
      signal: call.signal ? AbortSignal.any([call.signal, silence.signal]) : silence.signal,
      redirect: "manual",
      // Bun gives up after minutes of silence by itself, and would send calls to this machine through HTTP_PROXY.
      timeout: false,
      ...(isLoopbackUrl(url) ? { proxy: false } : {}),
      ...(url.startsWith("https:") ? { tls: { rejectUnauthorized: true } } : {}),
    } as RequestInit);
    if (response.status >= 300 && response.status < 400) {
      void response.body?.cancel();
      throw new ProxyError("upstream", `${call.who} answered with a redirect, which is not followed.`);
    }
    // What HTTP does not know could not be passed on either.
    if (response.status > 599) {
      void response.body?.cancel();
      throw new ProxyError("upstream", `${call.who} answered with status ${response.status}, which means nothing.`);
    }
    return response;
  } catch (thrown) {
    if (silence.signal.aborted && !call.signal?.aborted)
      throw new ProxyError("timeout", `${call.who} did not answer within ${Math.round(call.headersWithin / 1000)} s.`);
    throw thrown;
  } finally {
    clearTimeout(timer);
  }
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
    throw networkError(thrown, codeOf(thrown), who);
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
  const timer = setTimeout(() => void reader?.cancel(), within);
  try {
    while (reader && size < most) {
      const { done, value } = await reader.read();
      if (done) break;
      pieces.push(value);
      size += value.length;
    }
    void reader?.cancel();
  } catch {
    // A body that breaks off still has its beginning.
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(pieces).subarray(0, most).toString();
}

/** `localhost`, 127.0.0.0/8 or ::1: the hosts that plain http and no proxy are good for. */
export function isLoopbackUrl(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

/** A connection that is refused then is the proxy's. */
function goesThroughProxy(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  const name = protocol === "https:" ? "https_proxy" : "http_proxy";
  const spared = (process.env.no_proxy ?? process.env.NO_PROXY ?? "")
    .split(",")
    .map((each) => each.trim().replace(/^\./, ""));
  if (isLoopbackUrl(url) || spared.some((each) => each === "*" || (each && `.${hostname}`.endsWith(`.${each}`))))
    return false;
  return Boolean(process.env[name] ?? process.env[name.toUpperCase()]);
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

const sentences: [RegExp, string][] = [
  [/REFUSED|FailedToOpenSocket/i, "refused the connection"],
  [/ENOTFOUND|EAI_AGAIN/, "has a name that could not be resolved: is this machine offline?"],
  [/UNREACH/, "is not reachable from this network"],
  [/PROXY/, "could not be reached through the HTTP proxy that HTTPS_PROXY names"],
  [/CERT|SIGNATURE|TLS|SSL|EPROTO|ISSUER/i, "has a TLS certificate that could not be verified"],
  [/RESET|CLOSED|EPIPE/i, "broke the connection before its answer was complete"],
];

function networkError(thrown: unknown, code: string, who: string): ProxyError {
  const sentence = sentences.find(([pattern]) => pattern.test(code))?.[1] ?? "could not be reached";
  return new ProxyError("upstream", `${who} ${sentence}.`, { cause: thrown, code: "upstream_unreachable" });
}

function codeOf(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : "";
}
