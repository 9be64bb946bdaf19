/** Makes the client's answer from the upstream's successful answer. */

import type { Scope } from "../app";
import type { ReplyFailure } from "../dialects/hub/reply";
import { ProxyError } from "../errors";
import { isObject, notJson, parseWithSource } from "../json";
import type { ClientConnection } from "../net/in/guard";
import { type CallResponse, piecesOf, readStart, readText } from "../net/out/body";
import { pump } from "../net/stream/pump";
import { gatherFrames } from "../net/stream/sse";
import type { ReplyWatch } from "../upstream/changes/drift";
import { type Failure, upstreamErrorIn } from "../upstream/copilot/failure";
import type { RequestRecord } from "./request-record";
import type { RunningRequest } from "./running-request";
import type { UpstreamCall } from "./upstream-call";

const maxReplyBytes = 32 * 1024 * 1024;

/** One answer of the upstream. */
interface Reply {
  response: CallResponse;
  call: Omit<UpstreamCall, "body" | "headers">;
  running: RunningRequest;
  /** Looks at what is new in the answer. */
  watch?: ReplyWatch;
}

/** The upstream sent an error in place of a reply, and nothing of it went to the client. */
export class BrokenReply extends Error {
  /**
   * @param error The upstream's own; ours where what it sent was no reply.
   * @param hasBegun A part of a reply came before the error.
   */
  constructor(
    readonly error: ReplyFailure,
    readonly hasBegun: boolean,
  ) {
    super("The upstream sent an error in place of a reply.");
  }
}

/**
 * The failure of a reply that turned out to be an error: the request may be sent again.
 * @param failure What the error says.
 * @throws The failure's error if a reply had begun: it was generated and billed.
 */
export function afterBroken({ error, hasBegun }: BrokenReply, failure: Failure, record: RequestRecord): Failure {
  if (hasBegun) throw failure.error;
  record.replyFailed(error.code);
  return failure;
}

/** Answers with a full reply. @throws BrokenReply; ProxyError `upstream` when the answer is not a reply at all. */
export async function respondFull(reply: Reply): Promise<Response> {
  const { response, call, running, watch } = reply;
  const { record } = running;
  const text =
    call.stream || !call.reply.full
      ? await collectReply(reply)
      : readFull(await readText(response, maxReplyBytes), call, watch);
  if (record.earlyError) throw new BrokenReply(record.earlyError, false);
  record.markFirstByte();
  running.end(200);
  return new Response(text, { headers: { "content-type": "application/json" } });
}

/** Makes one full reply of an answer, which is read up to its last event. */
async function collectReply({ response, call, running, watch }: Reply): Promise<string> {
  if (call.stream && !isEvents(response)) throw await notEvents(response, call.who);
  const { body, bytes, text } = call.reply.collect!({ body: response.body, isStream: isEvents(response), watch });
  for await (const piece of piecesOf(body, maxReplyBytes)) {
    bytes.push(piece);
    if (running.record.isOver) break;
  }
  bytes.end();
  return text();
}

/** Whether it is a stream. */
export const isEvents = ({ headers }: CallResponse): boolean => /event-stream/.test(headers.get("content-type") ?? "");

function readFull(text: string, { reply, who }: Reply["call"], watch?: ReplyWatch): string {
  // What is no object need not be parsed: a list that is nested a million times takes long.
  const json = /^\s*\{/.test(text) ? parseWithSource(text) : undefined;
  if (!isObject(json)) throw notJson(`${who}'s answer`);
  watch?.full(json);
  return reply.full!(text, json);
}

/** @param type The content type, if it is not an event stream. */
export const streamHeaders = (type = "text/event-stream; charset=utf-8") => ({
  "content-type": type,
  "cache-control": "no-cache",
});

/** Why an answer is no stream: a BrokenReply if it is an error, a ProxyError `upstream` if it is anything else. */
export async function notEvents(response: CallResponse, who: string): Promise<BrokenReply | ProxyError> {
  const error = upstreamErrorIn(await readStart(response, 64 * 1024));
  return error
    ? new BrokenReply(error, false)
    : new ProxyError("upstream", `${who} did not answer with an event stream: is a proxy or a portal in the way?`);
}

/**
 * Answers with a stream. The answer begins when the first event is there, or when the upstream has been silent for
 * `keepAlive` ms.
 * @throws BrokenReply when the stream begins with an error, ProxyError when it timed out or ended before anything was sent.
 */
export async function respondStream(
  { limits, stopping }: Scope,
  {
    response,
    call,
    running,
    watch,
    clientGone,
    connection,
  }: Reply & { clientGone: AbortSignal; connection: ClientConnection },
): Promise<Response> {
  if (!isEvents(response)) throw await notEvents(response, call.who);
  const { record } = running;
  let isCommitted = false;
  let isEnded = false;
  let sent = () => {};
  let failure: ProxyError | undefined;
  const out = gatherFrames();
  const reading = call.reply.stages({ body: response.body, isStream: true, watch }, out);
  const { client } = reading;
  const { begun, body } = pump(
    reading.body,
    {
      feed: reading.bytes,
      take() {
        const output = out.take();
        if (!output) return undefined;
        record.addSent(output.length);
        return output;
      },
      isOver: () => record.isOver,
      keepAlive: () => client.keepAlive(),
      fail(error) {
        failure ??= error;
        record.failed(error);
        const event = { type: "error" as const, code: error.details.code ?? error.kind, message: error.message };
        client.fail(event);
        running.addEvent(event);
      },
      ended(how) {
        if (how === "client-gone") running.hungUp();
        else if (isCommitted || !record.earlyError) running.end(200);
        isEnded = true;
        sent();
      },
    },
    { keepAliveMs: limits.keepAlive, clientGone, stopping },
  );
  await begun;
  // Nothing was sent yet: the error can still be an answer with a status of its own.
  const { earlyError } = record;
  if (earlyError) throw failure ?? new BrokenReply(earlyError, false);
  isCommitted = true;
  if (!isEnded) sent = connection.streams();
  return new Response(body, { headers: streamHeaders(call.streamType) });
}
