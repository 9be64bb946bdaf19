/** Same dialect: the client's bytes go up and the upstream's bytes come down, changed by the named fixups only, or not at all. */

import { type Codec, codecs, type TranslationOptions } from "../dialects/codecs";
import { cutReply, invalidEventCode } from "../dialects/hub/block-lifecycle";
import type { Dialect, JsonObject } from "../dialects/hub/conversation";
import { omit } from "../dialects/hub/json";
import type { ReplyError, ReplyEvent } from "../dialects/hub/reply";
import { isObject, parseWithSource } from "../json";
import { editedTo, editMembers } from "../net/json/json-edit";
import { jsonOf, type SseFrame } from "../net/stream/sse";
import type { Sink } from "../net/stream/stream";
import { concealedFrame } from "./conceal";
import { bodyText, editIncoming, type Incoming, type ReadConversation } from "./incoming";
import type { RequestRecord } from "./request-record";
import { BrokenReply } from "./respond";
import { needsStream, type Target, whoOf } from "./target";
import { readFrames, type UpstreamCall, withoutBeta } from "./upstream-call";

interface PassthroughRequest {
  incoming: Incoming;
  dialect: Dialect;
  target: Target;
  record: RequestRecord;
  options: TranslationOptions;
  /** Some of them are sent on with a body of this dialect. */
  clientHeaders: Headers;
  conversation: ReadConversation;
}

/** A full reply that the model gives only as a stream is requested as one, and collected. */
export function passthrough(request: PassthroughRequest): UpstreamCall {
  const { incoming, target, record } = request;
  const codec = codecs[request.dialect];
  const isCollected = !incoming.stream && isOverFullOutput(request);
  const wanted = isCollected ? { ...incoming.body, stream: true } : incoming.body;
  const { body: sent, headers } = prepared(request, wanted);
  const reply: ReplyParts = { codec, context: codec.replyContext(incoming.body), record };
  return {
    who: whoOf(target),
    body: sent,
    stream: incoming.stream || isCollected,
    headers,
    withoutBeta: (beta) => withoutBeta(beta, request.options, (options) => prepared({ ...request, options }, wanted)),
    repaired: () => repairedText(codec.repairRequest, bodyText(sent)),
    fitTools(text) {
      const parsed = parseWithSource(text);
      const fitted = isObject(parsed) ? codec.repairTools(parsed) : undefined;
      if (fitted) record.addChanges(fitted);
      return fitted && editMembers(text, fitted.set, []);
    },
    full(text, json) {
      for (const event of codec.decodeReply(json)) record.addEvent(event);
      return passedText(reply, text, json);
    },
    collect(answer) {
      const { feed, text } = collectReply(reply);
      return { body: answer.body, bytes: readFrames(answer, feed), text };
    },
    stages(answer, out) {
      const { feed, client } = streamStages(reply, out);
      return { body: answer.body, bytes: readFrames(answer, feed), client };
    },
  };
}

/**
 * At a path of the provider's own not a byte is changed. The decoder reads along for the record and ignores what it does not
 * know. A stream that is cut off or contains an event that is not JSON ends with an error.
 */
export function verbatim({ incoming, dialect, target, record }: VerbatimRequest): UpstreamCall {
  const codec = codecs[dialect];
  const who = whoOf(target);
  const reply: ReplyParts = { codec, context: codec.replyContext(incoming.body), record };
  return {
    who,
    body: incoming.bytes,
    stream: incoming.stream,
    headers: {},
    full(text, json) {
      for (const event of codec.decodeReply(json)) if (event.type !== "error") record.addEvent(event);
      return text;
    },
    stages(answer, out) {
      const { feed, client } = verbatimStages(reply, who, out);
      return { body: answer.body, bytes: readFrames(answer, feed), client };
    },
  };
}

type VerbatimRequest = Pick<PassthroughRequest, "incoming" | "dialect" | "target" | "record">;

/** What is sent, with each change in the record. @param wanted The client's body, with the stream that it does not know of. */
function prepared(
  { incoming, dialect, target, record, options, clientHeaders }: PassthroughRequest,
  wanted: JsonObject,
) {
  const codec = codecs[dialect];
  const { set, remove, fixups, dropped } = codec.fixRequest(wanted, target.upstreamModel, options);
  if (wanted !== incoming.body) {
    set.stream = true;
    fixups.push("stream-gathered");
  }
  const isSame = fixups.length === 0;
  const body = isSame ? incoming.body : { ...omit(incoming.body, new Set(remove)), ...set };
  // A provider gets the client's own headers of the dialect.
  const dialectHeaders = target.provider
    ? undefined
    : codec.requestHeaders?.(clientHeaders, body, target.upstreamModel, options);
  record.addChanges({ fixups, dropped });
  record.addChanges(dialectHeaders ?? {});
  return {
    body: isSame ? incoming.bytes : editIncoming(incoming, set, remove),
    headers: dialectHeaders?.headers ?? {},
  };
}

function isOverFullOutput({ conversation, target }: PassthroughRequest): boolean {
  if (target.model.limits.fullOutput === undefined) return false;
  const decoded = conversation();
  return decoded !== undefined && needsStream(decoded, target);
}

export interface ReplyParts {
  codec: Codec;
  context: ReturnType<Codec["replyContext"]>;
  record: RequestRecord;
}

/** The upstream's text, changed by the fixups only. */
export function passedText(reply: ReplyParts, text: string, json: JsonObject): string {
  const fixed = fixReply(reply, json);
  return fixed === json ? text : editedTo(text, json, fixed);
}

/** The same object if nothing had to change. */
function fixReply({ codec, context, record }: ReplyParts, json: JsonObject): JsonObject {
  const fixed = codec.fixReply(json, context);
  record.addChanges(fixed);
  return fixed.fixups.length === 0 ? json : fixed.body;
}

/** Collects a stream into the full reply that the client requested. */
function collectReply(reply: ReplyParts): { feed: Sink<SseFrame>; text(): string } {
  const { codec, context, record } = reply;
  const collector = codec.collectStream(record.addFixup);
  let last: ReplyEvent | undefined;
  const decoder = codec.decodeStream(context)({
    push(event) {
      last = event;
      record.addEvent(event);
    },
    end() {},
  });
  return {
    feed: {
      push(frame) {
        if (last?.type === "finish" || last?.type === "error") return;
        collector.push(frame);
        decoder.push(frame);
      },
      end: () => decoder.end(),
    },
    text() {
      if (last?.type === "error") throw new BrokenReply(last, record.earlyError === undefined);
      return JSON.stringify(fixReply(reply, collector.body()));
    },
  };
}

function streamStages({ codec, context, record }: ReplyParts, out: Sink<SseFrame>) {
  const client = codec.fixStream(context, record.addFixup)(out);
  // A reply that the decoder cannot follow must not end as if it were complete.
  let error: ReplyError | undefined;
  const reader = codec.decodeStream(context)({
    push(event) {
      if (event.type === "error") error = event;
      record.addEvent(event);
    },
    end() {},
  });
  return {
    client,
    feed: {
      push(frame: SseFrame) {
        reader.push(frame);
        if (error?.code === invalidEventCode) client.fail(error);
        else client.push(error ? concealedFrame(frame, record.conceal) : frame);
      },
      end() {
        reader.end();
        client.end();
      },
    },
  };
}

function verbatimStages({ codec, context, record }: ReplyParts, who: string, out: Sink<SseFrame>) {
  const client = codec.fixStream(context, record.addFixup)(out);
  /** How the current frame ends the stream, if it does. */
  let end: ReplyEvent | undefined;
  const reader = codec.decodeStream()({
    push(event) {
      if (event.type !== "error" || end?.type === "error") record.addEvent(event);
    },
    end() {},
  });
  const fail = (error: Omit<ReplyError, "type">) => {
    if (record.isOver) return;
    const event = { type: "error" as const, ...error };
    client.fail(event);
    record.addEvent(event);
  };
  return {
    client: { keepAlive: client.keepAlive, fail },
    feed: {
      push(frame: SseFrame) {
        if (frame.data && frame.data !== "[DONE]" && !isObject(jsonOf(frame)))
          return fail({ code: "upstream_invalid", message: `${who} sent an event that is not JSON.` });
        end = codec.endIn?.(frame);
        reader.push(frame);
        // Where the decoder could not follow the stream, the record still gets its end.
        if (end && !record.isOver) record.addEvent(end);
        out.push(end?.type === "error" ? concealedFrame(frame, record.conceal) : frame);
      },
      end: () => fail(cutReply),
    },
  };
}

function repairedText(repair: (body: JsonObject) => JsonObject, text: string): string {
  const body = parseWithSource(text);
  return isObject(body) ? editedTo(text, body, repair(body)) : text;
}
