/** Holds a request at a limit until it can be served, if the owner wants that, and keeps its client awake meanwhile. */

import type { Waiter } from "../accounts/waiting-room";
import type { Scope } from "../app";
import { countsOnlyEvents } from "../clients/agent-names";
import type { Conversation } from "../dialects/hub/conversation";
import { asProxyError, ProxyError } from "../errors";
import { requireUnexpired } from "../keys/client-keys";
import { gatherFrames, jsonFrame } from "../net/stream/sse";
import { withTimeLimit } from "../net/time-limit";
import { clientClosed } from "./client-error";
import type { Exchange } from "./exchange";
import { streamHeaders } from "./respond";

/** Milliseconds: Node's fetch gives up after five minutes without headers, and a full answer has none before its end. */
const longestWithoutStream = 240_000;

/**
 * The answer of `serve`, which is asked again after each limit that the request may wait for.
 * @throws ProxyError What `serve` threw last; that of a server that stops.
 */
export async function orWait(parts: Scope, exchange: Exchange, serve: Serve): Promise<Response> {
  const since = parts.now();
  const isHeld = canWait(parts);
  if (isHeld) exchange.keep();
  const last = isHeld ? parts.waitingRoom.lastOf(lineOf(exchange)) : undefined;
  // Requests that wait already go first.
  if (last) return hold(parts, exchange, holdingFor(exchange, last, since, serve));
  try {
    return await serve(parts, exchange);
  } catch (thrown) {
    const limit = limitOf(parts, exchange, since, thrown);
    if (!limit) throw thrown;
    return hold(parts, exchange, holdingFor(exchange, limit, since, serve));
  }
}

const lineOf = ({ running, incoming }: Exchange): string => `${running.member ?? ""} ${incoming.model}`;

const canWait = ({ config }: Scope): boolean => config.current.whenLimited === "wait";

type Serve = (parts: Scope, exchange: Exchange) => Promise<Response>;

type Limit = Pick<Waiter, "error" | "untilReady">;

/** The limit that the request waits for; undefined if it may not, or would wait in vain. */
function limitOf(parts: Scope, exchange: Exchange, since: number, thrown: unknown): Limit | undefined {
  if (exchange.running.isStopped || exchange.record.hasBegun || !(thrown instanceof ProxyError)) return undefined;
  // Where waiting was switched on while the request was on its way, it is refused as before.
  if (!exchange.canServeAgain) return undefined;
  const { untilReady } = thrown.details;
  if (!untilReady || !canWait(parts)) return undefined;
  const ms = untilReady();
  if (ms === undefined || parts.now() + ms > deadlineOf(parts, exchange, since)) return undefined;
  return { error: thrown, untilReady };
}

function deadlineOf({ config }: Scope, exchange: Exchange, since: number): number {
  const longest = config.current.longestWaitMinutes * 60_000;
  return since + (isKeptAwake(exchange) ? longest : Math.min(longest, longestWithoutStream));
}

/** Google's packages take nothing before the first event. */
const isKeptAwake = ({ incoming, dialect }: Exchange): boolean => incoming.stream && dialect !== "gemini";

interface Holding extends Limit {
  line: string;
  /** Timestamp, ms: when the request came. */
  since: number;
  serve: Serve;
}

const holdingFor = (exchange: Exchange, { error, untilReady }: Limit, since: number, serve: Serve): Holding => ({
  ...{ error, untilReady, since, serve },
  line: lineOf(exchange),
});

/** The answer when it is there; a stream begins with keep-alives before that. */
async function hold(parts: Scope, exchange: Exchange, holding: Holding): Promise<Response> {
  const answer = served(parts, exchange, holding);
  if (!isKeptAwake(exchange)) return answer;
  // An error that comes soon has a status of its own.
  if (await isSettledWithin(answer, parts.limits.keepAlive)) return answer;
  return keptAwake(parts, exchange, answer);
}

/** Waits, tries, and waits again as long as that may help. */
async function served(parts: Scope, exchange: Exchange, first: Holding): Promise<Response> {
  const { waitingRoom } = parts;
  const { record, running, incoming } = exchange;
  const { line, since, serve } = first;
  const deadline = deadlineOf(parts, exchange, since);
  let limit: Limit = first;
  let wasServed = false;
  try {
    for (;;) {
      await running.budget.release();
      record.beginWait(limit.error.written, parts.now() + (limit.untilReady() ?? 0));
      await waitingRoom.wait({
        ...{ id: running.requestId, line, member: running.member, bytes: incoming.bytes.length },
        ...{ ...limit, since, deadline, signal: running.controller.signal },
      });
      record.endWait();
      if (exchange.key) requireUnexpired(exchange.key, parts.now());
      try {
        const answer = await serve(parts, exchange);
        wasServed = true;
        return answer;
      } catch (thrown) {
        const next = limitOf(parts, exchange, since, thrown);
        if (!next) throw thrown;
        limit = next;
      }
    }
  } finally {
    record.endWait();
    waitingRoom.leave(running.requestId, wasServed);
  }
}

function isSettledWithin(answer: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = () => true;
  return withTimeLimit(answer.then(settled, settled), ms, () => false);
}

/** A stream that has begun before its answer is there: what goes wrong from now on is an event in it. */
function keptAwake({ limits }: Scope, exchange: Exchange, answer: Promise<Response>): Response {
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
        // The answer's own stream has ended its record, and none is there before.
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
  return new Response(body, { headers: streamHeaders(codec.streamType?.(asked)) });
}
