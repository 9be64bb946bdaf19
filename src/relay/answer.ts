/** The upstream's good answer, made into the client's. */

import type { App } from "../app";
import { ProxyError } from "../errors";
import { isObject, notJson, parseJson } from "../json";
import { discard, readBody } from "../net/fetch";
import { pump } from "../net/pump";
import { gatherFrames, readSse } from "../net/sse";
import { run } from "../net/stream";
import { brokenReply } from "../upstream/failure";
import type { Call } from "./call";
import type { Exchange } from "./exchange";

/** Bytes. */
const fullReplyLimit = 32 * 1024 * 1024;

/** A full reply. @throws ProxyError `upstream` when it is none. */
export async function answerFull(response: Response, call: Call, exchange: Exchange): Promise<Response> {
  if (call.stream) eventsOf(response, call.who);
  const bytes = await readBody(response, fullReplyLimit, call.who);
  const text = call.stream ? call.collect!(run(readSse, [bytes])) : readFull(bytes, call);
  if (exchange.brokenAtOnce) throw brokenReply(exchange.brokenAtOnce);
  exchange.firstByte();
  exchange.end(200);
  return new Response(text, { headers: { "content-type": "application/json" } });
}

const utf8 = new TextDecoder();

function readFull(bytes: Uint8Array, call: Call): string {
  const text = utf8.decode(bytes);
  const json = parseJson(text);
  if (!isObject(json)) throw notJson(`${call.who}'s answer`);
  return call.full(text, json);
}

/** @throws ProxyError `upstream` when they are none. */
function eventsOf({ body, headers }: Response, who: string): ReadableStream<Uint8Array> {
  if (body && /event-stream/.test(headers.get("content-type") ?? "")) return body;
  discard(body);
  throw new ProxyError("upstream", `${who} did not answer with an event stream: is a proxy or a portal in the way?`);
}

/**
 * A streamed reply, once its first event is there, its failure is known, or it has been silent for a while.
 * @throws ProxyError `upstream` when it broke before anything went out.
 */
export async function answerStream(
  app: App,
  response: Response,
  call: Call,
  exchange: Exchange,
  gone: AbortSignal,
): Promise<Response> {
  const upstream = eventsOf(response, call.who);
  let committed = false;
  const out = gatherFrames();
  const { feed, client } = call.stages(out);
  const { begun, body } = pump(
    upstream,
    {
      feed: readSse(feed),
      take() {
        const taken = out.take();
        if (taken) exchange.firstByte();
        return taken;
      },
      isOver: () => exchange.isOver,
      beat: () => client.beat(),
      fail(error) {
        const told = { type: "error" as const, code: error.details.code ?? error.kind, message: error.message };
        client.fail(told);
        exchange.see(told);
      },
      ended(how) {
        if (how === "client-gone") exchange.left();
        else if (committed || !exchange.brokenAtOnce) exchange.end(200);
      },
    },
    app.limits,
    gone,
    [app.stopping, exchange.signal],
  );
  await begun;
  // Nothing went out yet: the failure is still an answer with a status.
  const { brokenAtOnce } = exchange;
  if (brokenAtOnce) throw brokenReply(brokenAtOnce);
  committed = true;
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
  });
}
