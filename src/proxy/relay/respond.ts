/** Makes the client's answer from the upstream's successful answer. */

import type { ReplyWatch } from "../../books/changes/drift";
import type { ReplyFailure } from "../../dialects/hub/reply";
import { ProxyError } from "../../lib/errors";
import type { ClientConnection } from "../../lib/net/in/caller";
import { type CallResponse, piecesOf, readStart, readText } from "../../lib/net/out/body";
import { pump } from "../../lib/net/stream/pump";
import { gatherFrames } from "../../lib/net/stream/sse";
import type { RequestScope } from "../scope";
import { upstreamErrorIn } from "../upstream/copilot/failure";
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

/** Answers with a full reply. @throws BrokenReply; ProxyError `upstream` when the answer is not a reply at all. */
export async function respondFull(reply: Reply): Promise<Response> {
  const { response, call, running, watch } = reply;
  const { book } = running;
  const isStream = isEvents(response);
  if (call.stream && !isStream) throw await notEvents(response, call.who);
  const writer = call.reply.full();
  const { body, bytes } = call.reply.open({ body: response.body, isStream, watch }, writer);
  if (bytes.takeText) bytes.takeText(await readText(response, maxReplyBytes));
  else {
    for await (const piece of piecesOf(body, maxReplyBytes)) {
      bytes.push(piece);
      if (!book.isOver) continue;
      body.release();
      break;
    }
    bytes.end();
  }
  const text = writer.text();
  if (book.earlyError) throw new BrokenReply(book.earlyError, false);
  book.markFirstByte();
  running.end(200);
  return new Response(text, { headers: { "content-type": "application/json" } });
}

/** Whether it is a stream. */
export const isEvents = ({ headers }: CallResponse): boolean => /event-stream/.test(headers.get("content-type") ?? "");

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
  { limits, stopping }: RequestScope,
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
  const { book } = running;
  let isCommitted = false;
  let isEnded = false;
  let sent = () => {};
  let failure: ProxyError | undefined;
  const out = gatherFrames();
  const client = call.reply.stream(out);
  const { body: upstream, bytes } = call.reply.open({ body: response.body, isStream: true, watch }, client);
  const { begun, body } = pump(
    upstream,
    {
      feed: bytes,
      take() {
        const output = out.take();
        if (!output) return undefined;
        book.addSent(output.length);
        return output;
      },
      isOver: () => book.isOver,
      keepAlive: () => client.keepAlive(),
      fail(error) {
        failure ??= error;
        book.failed(error);
        const event = { type: "error" as const, code: error.details.code ?? error.kind, message: error.message };
        client.fail(event);
        running.addEvent(event);
      },
      ended(how) {
        if (how === "client-gone") running.hungUp();
        else if (isCommitted || !book.earlyError) running.end(200);
        isEnded = true;
        sent();
      },
    },
    { keepAliveMs: limits.keepAlive, clientGone, stopping },
  );
  await begun;
  // Nothing was sent yet: the error can still be an answer with a status of its own.
  const { earlyError } = book;
  if (earlyError) throw failure ?? new BrokenReply(earlyError, false);
  isCommitted = true;
  if (!isEnded) sent = connection.streams();
  return new Response(body, { headers: streamHeaders(client.type) });
}
