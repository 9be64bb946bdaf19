/** The upstream's good answer, made into the client's. */

import type { App } from "../app";
import { ProxyError } from "../errors";
import { isObject, notJson, parseSpelt } from "../json";
import { type CallResponse, piecesOf, readBody, readStart } from "../net/body";
import { pump } from "../net/pump";
import { gatherFrames, readSse } from "../net/sse";
import { upstreamErrorIn } from "../upstream/failure";
import type { RequestRecord } from "./request-record";
import type { UpstreamCall } from "./upstream-call";

/** Bytes. */
const fullReplyLimit = 32 * 1024 * 1024;

/** The upstream told of an error in place of a reply, and nothing of it went to the client. */
export class BrokenReply extends Error {
  /**
   * @param told In the upstream's words, or in ours where the reply was none.
   * @param begun Something of a reply was there before.
   */
  constructor(
    readonly told: { code: string; message: string },
    readonly begun: boolean,
  ) {
    super(told.message);
  }
}

/** A full reply. @throws BrokenReply, or ProxyError `upstream` when it is none. */
export async function respondFull(
  response: CallResponse,
  call: UpstreamCall,
  exchange: RequestRecord,
): Promise<Response> {
  const text = call.stream
    ? await collectStream(response, call, exchange)
    : readFull(await readBody(response, fullReplyLimit), call);
  if (exchange.earlyError) throw new BrokenReply(exchange.earlyError, false);
  exchange.markFirstByte();
  exchange.end(200);
  return new Response(text, { headers: { "content-type": "application/json" } });
}

/** Read no further than its terminal event, as a stream is that goes on to the client. */
async function collectStream(response: CallResponse, call: UpstreamCall, exchange: RequestRecord): Promise<string> {
  await requireEvents(response, call.who);
  const { feed, text } = call.collect!();
  const frames = readSse(feed);
  for await (const piece of piecesOf(response.body, fullReplyLimit)) {
    frames.push(piece);
    if (exchange.isOver) break;
  }
  frames.end();
  return text();
}

const utf8 = new TextDecoder();

function readFull(bytes: Uint8Array, call: UpstreamCall): string {
  const text = utf8.decode(bytes);
  const json = parseSpelt(text);
  if (!isObject(json)) throw notJson(`${call.who}'s answer`);
  return call.full(text, json);
}

/** @throws BrokenReply when the answer is an error instead, ProxyError `upstream` when it is anything else. */
async function requireEvents(response: CallResponse, who: string): Promise<void> {
  if (/event-stream/.test(response.headers.get("content-type") ?? "")) return;
  const told = upstreamErrorIn(await readStart(response, 64 * 1024));
  if (told) throw new BrokenReply(told, false);
  throw new ProxyError("upstream", `${who} did not answer with an event stream: is a proxy or a portal in the way?`);
}

/**
 * A streamed reply, once its first event is there, its failure is known, or it has been silent for a while.
 * @throws BrokenReply when it is an error, ProxyError when it was given up or ended before anything went out.
 */
export async function respondStream(
  app: App,
  response: CallResponse,
  call: UpstreamCall,
  exchange: RequestRecord,
  gone: AbortSignal,
): Promise<Response> {
  await requireEvents(response, call.who);
  let committed = false;
  let givenUp: ProxyError | undefined;
  const out = gatherFrames();
  const { feed, client } = call.stages(out);
  const { begun, body } = pump(
    response.body,
    {
      feed: readSse(feed),
      take() {
        const taken = out.take();
        if (taken) exchange.markFirstByte();
        return taken;
      },
      isOver: () => exchange.isOver,
      keepAlive: () => client.keepAlive(),
      fail(error) {
        givenUp ??= error;
        const told = { type: "error" as const, code: error.details.code ?? error.kind, message: error.message };
        client.fail(told);
        exchange.addEvent(told);
      },
      ended(how) {
        if (how === "client-gone") exchange.hungUp();
        else if (committed || !exchange.earlyError) exchange.end(200);
      },
    },
    app.limits.keepAlive,
    gone,
    app.stopping,
  );
  await begun;
  // Nothing went out yet: the failure is still an answer with a status.
  const { earlyError: brokenAtOnce } = exchange;
  if (brokenAtOnce) throw givenUp ?? new BrokenReply(brokenAtOnce, false);
  committed = true;
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
  });
}
