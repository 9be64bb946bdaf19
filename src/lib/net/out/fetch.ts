/** Outgoing calls: with time limits, without redirects, without a proxy for this machine, and with readable network errors. */
import { BoundedMap } from "../../bounded-map";
import { codeOf, ProxyError } from "../../errors";
import { isLoopbackUrl } from "../address";
import { type CallResponse, openBody } from "./body";
import { type CallClock, type CallLimits, startClock } from "./clock";
import { networkError, tunnelStatus } from "./network-errors";
import { countLookups, noteLookup, wasReused } from "./reuse";

/** A blob is not copied by `fetch`, which keeps what it sends until the answer begins. */
export type SentBytes = string | Uint8Array | Blob;

/** What a caller says of a call, to whomever it goes. */
export interface CallOptions {
  headers?: Record<string, string>;
  /** If missing, the request is a GET. */
  body?: SentBytes;
  /** Ends the call. A limit of the call aborts it too, which saves a controller per call: for the last call of a request. */
  controller?: AbortController;
  limits: CallLimits;
  /** Hears when the call is repeated. Without it a POST is sent once. */
  listener?: CallListener | undefined;
}

export interface CallListener {
  /** The call is repeated because nothing was sent or because it is a GET. @param why The error's code. */
  retried(why: string): void;
  /** A POST is sent a second time, after this error. */
  resent(error: ProxyError): void;
}

export interface OutgoingCall extends CallOptions {
  method: "GET" | "POST";
  headers: Record<string, string>;
  /** Instead of `controller`: ends the call, before or after the response's headers. */
  signal?: AbortSignal;
  /** Who is called, for messages: `GitHub Copilot`. */
  who: string;
  /** The headers with which it is sent a second time, made of the first ones; the same where it is missing. */
  headersAgain?: (headers: Record<string, string>) => Record<string, string>;
}

/**
 * One call to a service. It is repeated once
 * - when no connection could be made: nothing was sent;
 * - when the connection broke in the first 250 ms, before a byte of an answer, and the call is a GET, or a POST on
 *   a reused connection, which the other side was just closing.
 * Bun itself repeats a GET on a reused connection, and never a POST.
 * @throws ProxyError `upstream` (unreachable, redirect), `timeout` (silent), or the signal's own reason.
 */
export async function callOut(url: string, call: OutgoingCall): Promise<CallResponse> {
  const lookups = countLookups();
  const clock = startClock(call.limits, call.who, url, call.controller ?? call.signal);
  const sentAt = performance.now();
  try {
    const response = await fetch(url, requestTo(url, call, clock.signal, true));
    if (countLookups() > lookups) noteLookup(url);
    return responseOf(response, clock, url, call);
  } catch (thrown) {
    throwFinal(thrown, clock);
    const brokeAtOnce = codeOf(thrown) === "ECONNRESET" && performance.now() - sentAt < 250;
    // A proxy that refuses will refuse again, and may count wrong passwords.
    const isRefusedByProxy = (tunnelStatus(thrown) ?? 500) < 500;
    const error = networkError(thrown, url, call.who);
    let { headers } = call;
    if (brokeAtOnce && call.method === "POST") {
      if (!call.listener || !wasReused(url, lookups)) throw error;
      call.listener.resent(error);
      headers = call.headersAgain?.(headers) ?? headers;
    } else if ((brokeAtOnce || neverConnected.has(codeOf(thrown))) && !isRefusedByProxy)
      call.listener?.retried(codeOf(thrown));
    else throw error;
    return callAgain(url, { ...call, headers });
  }
}

/** Repeats the call on a new connection, because the other connections in the pool may be stale too. */
async function callAgain(url: string, call: OutgoingCall): Promise<CallResponse> {
  await Bun.sleep(50 + Math.random() * 200);
  const clock = startClock(call.limits, call.who, url, call.controller ?? call.signal);
  try {
    return responseOf(await fetch(url, requestTo(url, call, clock.signal, false)), clock, url, call);
  } catch (thrown) {
    throwFinal(thrown, clock);
    throw networkError(thrown, url, call.who);
  }
}

/** Ends the call. @throws The reason of an abort, or a ProxyError; other errors are left to the caller. */
function throwFinal(thrown: unknown, clock: CallClock): void {
  clock.stop();
  if (clock.signal.aborted) throw clock.signal.reason;
  if (thrown instanceof ProxyError) throw thrown;
}

function requestTo(url: string, call: OutgoingCall, signal: AbortSignal, keepalive: boolean): RequestInit {
  const request: BunFetchRequestInit = {
    method: call.method,
    headers: call.headers,
    body: call.body,
    signal,
    redirect: "manual",
    keepalive,
    // Bun gives up after minutes of silence by itself, and would send calls to this machine through HTTP_PROXY.
    timeout: false,
  };
  if (isOnThisMachine(url)) request.proxy = false;
  if (url.startsWith("https:")) request.tls = { rejectUnauthorized: true };
  return request;
}

/** {@link isLoopbackUrl} of the addresses called so far, by their origins. */
const loopbackOrigins = new BoundedMap<string, boolean>(100);

function isOnThisMachine(url: string): boolean {
  const end = url.indexOf("/", "https://".length);
  const origin = end === -1 ? url : url.slice(0, end);
  let isLoopback = loopbackOrigins.get(origin);
  if (isLoopback === undefined) {
    isLoopback = isLoopbackUrl(url);
    loopbackOrigins.set(origin, isLoopback);
  }
  return isLoopback;
}

function responseOf(response: Response, clock: CallClock, url: string, { who }: OutgoingCall) {
  const { status, ok, headers } = response;
  clock.answered();
  const body = openBody(response, clock, who, url);
  const fault = faultIn(status);
  if (fault === undefined) return { status, ok, headers, body };
  body.cancel();
  throw new ProxyError("upstream", `${who} ${fault}`);
}

function faultIn(status: number): string | undefined {
  if (status >= 300 && status < 400) return "answered with a redirect, which is not followed.";
  // A status that HTTP does not define cannot be passed on.
  return status > 599 ? `answered with status ${status}, which is not a valid HTTP status.` : undefined;
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
