/** Holds a request at a limit until it can be served, if the owner wants that, and keeps its client awake meanwhile. */

import { countsOnlyEvents } from "../../clients/agent-names";
import type { Conversation } from "../../dialects/hub/conversation";
import type { Awaitable } from "../../lib/awaitable";
import { asProxyError, ProxyError } from "../../lib/errors";
import { gatherFrames, jsonFrame } from "../../lib/net/stream/sse";
import { withTimeLimit } from "../../lib/net/time-limit";
import type { Waiter } from "../../people/accounts/waiting-room";
import { requireUnexpired } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import { after } from "./after";
import { release } from "./budget-lines";
import { clientClosed } from "./client-error";
import type { Exchange } from "./exchange";
import { streamHeaders } from "./respond";

/** Milliseconds: Node's fetch gives up after five minutes without headers, and a full answer has none before its end. */
const longestWithoutStream = 240_000;

type Serve = (parts: RequestScope, exchange: Exchange) => Awaitable<Response>;

type Limit = Pick<Waiter, "error" | "untilReady">;

/** A request's place in its line, and until when it may wait. */
type Place = Pick<Waiter, "line" | "since" | "bytes" | "deadline">;

/**
 * The answer of `serve`, which is asked again after each limit that the request may wait for.
 * @throws ProxyError What `serve` threw last; that of a server that stops.
 */
export function orWait(parts: RequestScope, exchange: Exchange, serve: Serve): Awaitable<Response> {
  return parts.config.current.whenLimited === "wait" ? serveOrHold(parts, exchange, serve) : serve(parts, exchange);
}

async function serveOrHold(parts: RequestScope, exchange: Exchange, serve: Serve): Promise<Response> {
  exchange.keep();
  const place = placeOf(parts, exchange);
  // Requests that wait only for their turn go first; its own limits it learns when it is tried.
  const last = parts.waitingRoom.lastReadyOf(place.line);
  if (last) return hold(parts, exchange, place, { error: last.error, untilReady: () => 0 }, serve);
  try {
    return await serve(parts, exchange);
  } catch (thrown) {
    const limit = limitOf(exchange, place, thrown);
    if (!limit) throw thrown;
    return hold(parts, exchange, place, limit, serve);
  }
}

function placeOf({ config }: RequestScope, exchange: Exchange): Place {
  const { incoming, running } = exchange;
  const since = performance.now();
  const longest = config.current.longestWaitMinutes * 60_000;
  return {
    line: `${running.member ?? ""} ${incoming.model}`,
    since,
    bytes: incoming.bytes.length,
    deadline: since + (isKeptAwake(exchange) ? longest : Math.min(longest, longestWithoutStream)),
  };
}

/** The limit that the request waits for; undefined if it may not, or would wait in vain. */
function limitOf({ running, book }: Exchange, { deadline }: Place, thrown: unknown): Limit | undefined {
  if (!(thrown instanceof ProxyError)) return undefined;
  const { untilReady } = thrown.details;
  const ms = untilReady?.();
  const trouble = running.isStopped ? "stopped" : book.hasBegun ? "begun" : "ending";
  const isInTime = ms !== undefined && performance.now() + ms <= deadline;
  const step = after([trouble], { isLeft: (each) => each === "wait" && isInTime });
  return step === "wait" && untilReady ? { error: thrown, untilReady } : undefined;
}

/** Google's packages take nothing before the first event. */
const isKeptAwake = ({ incoming, dialect }: Exchange): boolean => incoming.stream && dialect !== "gemini";

/** The answer when it is there; a stream begins with keep-alives before that. */
async function hold(
  parts: RequestScope,
  exchange: Exchange,
  place: Place,
  limit: Limit,
  serve: Serve,
): Promise<Response> {
  const answer = served(parts, exchange, place, limit, serve);
  if (!isKeptAwake(exchange)) return answer;
  // An error that comes soon has a status of its own.
  if (await isSettledWithin(answer, parts.limits.keepAlive)) return answer;
  return keptAwake(parts, exchange, answer);
}

/** Waits, tries, and waits again as long as that may help. */
async function served(
  parts: RequestScope,
  exchange: Exchange,
  place: Place,
  first: Limit,
  serve: Serve,
): Promise<Response> {
  const { key, book, running } = exchange;
  for (let limit = first; ; ) {
    await release(parts, running);
    book.beginWait(limit.error.written, parts.now() + (limit.untilReady() ?? 0));
    const done = await parts.waitingRoom
      .wait({ ...place, ...limit, signal: running.controller.signal })
      .finally(() => book.endWait());
    let wasServed = false;
    try {
      if (key) requireUnexpired(key, parts.now());
      book.beginChapter();
      const answer = await serve(parts, exchange);
      wasServed = true;
      return answer;
    } catch (thrown) {
      const next = limitOf(exchange, place, thrown);
      if (!next) throw thrown;
      limit = next;
    } finally {
      done(wasServed);
    }
  }
}

function isSettledWithin(answer: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = () => true;
  return withTimeLimit(answer.then(settled, settled), ms, () => false);
}

/** A stream that has begun before its answer is there: what goes wrong from now on is an event in it. */
function keptAwake({ limits }: RequestScope, exchange: Exchange, answer: Promise<Response>): Response {
  const { codec, connection, dialect, headers, incoming, running } = exchange;
  const asked: Conversation = exchange.conversation() ?? { model: incoming.model, stream: true, turns: [], tools: [] };
  const out = gatherFrames();
  const writer = codec.encodeStream(asked)(out);
  const ended = connection.streams();
  const isEvents = countsOnlyEvents(headers.get("user-agent"));
  let reader: Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel"> | undefined;
  let isFirst = true;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        while (!reader) {
          if (isFirst || !(await isSettledWithin(answer, limits.keepAlive))) {
            isFirst = false;
            if (dialect === "responses" && isEvents) out.push(jsonFrame({ type: "keepalive" }, "keepalive"));
            else writer.keepAlive();
            return controller.enqueue(out.take() ?? new Uint8Array());
          }
          reader = (await answer).body!.getReader();
        }
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
      } catch (thrown) {
        // The answer's own stream has ended its book, and none is there before.
        const { details, kind, message } = reader ? asProxyError(thrown) : running.fail(thrown, 200);
        writer.fail({ type: "error", code: details.code ?? kind, message });
        const last = out.take();
        if (last) controller.enqueue(last);
      }
      ended();
      controller.close();
    },
    async cancel(reason) {
      ended();
      if (reader) await reader.cancel(reason);
      else {
        running.stop(clientClosed);
        await answer.catch((thrown) => running.fail(thrown, 499));
      }
    },
  });
  return new Response(body, { headers: streamHeaders(writer.type) });
}
