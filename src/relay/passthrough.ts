/** Same dialect: the client's bytes go up and the upstream's bytes come down, changed by the named fixups only, or not at all. */

import { type Codec, codecs, type ReplyContext, type TranslationOptions } from "../dialects/codecs";
import { cutReply, invalidEventOf } from "../dialects/hub/block-lifecycle";
import type { Dialect, JsonObject } from "../dialects/hub/conversation";
import type { ReplyError, ReplyEvent } from "../dialects/hub/reply";
import { isObject } from "../json";
import { editedTo } from "../net/json/json-edit";
import { jsonOf, type SseFrame } from "../net/stream/sse";
import type { Sink } from "../net/stream/stream";
import type { Exchange } from "./exchange";
import { editIncoming } from "./incoming";
import { BrokenReply } from "./respond";
import type { RunningRequest } from "./running-request";
import { needsStream, type Target, whoOf } from "./target";
import { type Answer, readFrames, type UpstreamCall, type UpstreamReply } from "./upstream-call";

type PassedTarget = Target & { dialect: Dialect };

/** A full reply that the model gives only as a stream is requested as one, and collected. */
export function passthrough(exchange: Exchange, target: PassedTarget, options: TranslationOptions): UpstreamCall {
  const { incoming } = exchange;
  const isCollected = !incoming.stream && needsStream(codecs[target.dialect].maxTokens(incoming.body), target);
  const wanted = isCollected ? { ...incoming.body, stream: true } : incoming.body;
  const { body: sent, headers } = prepared(exchange, target, options, wanted);
  return {
    who: whoOf(target),
    body: sent,
    stream: incoming.stream || isCollected,
    headers,
    reply: new PassedReply(exchange, target),
  };
}

/** At a path of the provider's own not a byte is changed. */
export function verbatim(exchange: Exchange, target: PassedTarget): UpstreamCall {
  const { bytes, stream } = exchange.incoming;
  return { who: whoOf(target), body: bytes, stream, headers: {}, reply: new VerbatimReply(exchange, target) };
}

/** The body and headers to send; the record has each change. @param wanted The client's body, with `stream` if a full reply is to be collected. */
function prepared(
  { incoming, record, headers: clientHeaders }: Exchange,
  target: PassedTarget,
  options: TranslationOptions,
  wanted: JsonObject,
) {
  const codec = codecs[target.dialect];
  const { body, fixups, dropped } = codec.fixRequest(wanted, target.upstreamModel, options);
  if (wanted !== incoming.body) fixups.push("stream-gathered");
  // A provider gets the client's own headers of the dialect.
  const dialectHeaders = target.provider
    ? undefined
    : codec.requestHeaders?.(clientHeaders, body, target.upstreamModel, options);
  record.addChanges({ fixups, dropped });
  if (dialectHeaders) record.addChanges(dialectHeaders);
  return {
    body: editIncoming(incoming, body),
    headers: dialectHeaders?.headers ?? {},
  };
}

/** A reply in the client's own dialect: it is passed on with fixups, and the decoder reads along for the record. */
export class PassedReply implements UpstreamReply {
  readonly codec: Codec;
  readonly context: ReplyContext;
  readonly running: RunningRequest;

  constructor({ incoming, running }: Exchange, { dialect }: PassedTarget) {
    this.codec = codecs[dialect];
    this.context = this.codec.replyContext(incoming.body);
    this.running = running;
  }

  full(text: string, json: JsonObject): string {
    for (const event of this.codec.decodeReply(json, this.note)) this.running.addEvent(event);
    return this.fixed(text, json);
  }

  readonly note = (name: string): void => this.running.record.addFixup(name);

  /** The upstream's text, changed by the fixups only. */
  fixed(text: string, json: JsonObject): string {
    const fixed = this.#fix(json);
    return fixed === json ? text : editedTo(text, json, fixed);
  }

  /** The same object if nothing had to change. */
  #fix(json: JsonObject): JsonObject {
    return this.codec.fixReply(json, this.context, this.note);
  }

  /** Collects a stream into the full reply that the client requested. */
  collect(answer: Answer) {
    const { codec, context, running, note } = this;
    const { record } = running;
    let error: ReplyError | undefined;
    const events: Sink<ReplyEvent> = {
      push(event) {
        if (event.type === "error") error = event;
        running.addEvent(event);
      },
      end() {},
    };
    const collector = codec.collectStream(note, events, context);
    const bytes = readFrames(answer, collector);
    const text = () => {
      if (error) throw new BrokenReply(error, record.earlyError === undefined);
      return JSON.stringify(this.#fix(collector.body()));
    };
    return { body: answer.body, bytes, text };
  }

  stages(answer: Answer, out: Sink<SseFrame>) {
    const { codec, context, running, note } = this;
    const events: Sink<ReplyEvent> = { push: (event) => running.addEvent(event), end() {} };
    const client = codec.fixStream(context, note, events)(out);
    const bytes = readFrames(answer, client);
    return { body: answer.body, bytes, client };
  }
}

/**
 * A reply of which not a byte is changed. The decoder reads along and ignores what it does not know. A stream that is cut off
 * or contains an event that is not JSON ends with an error.
 */
class VerbatimReply implements UpstreamReply {
  readonly #passed: PassedReply;

  constructor(exchange: Exchange, target: PassedTarget) {
    this.#passed = new PassedReply(exchange, target);
  }

  full(text: string, json: JsonObject): string {
    const { codec, running, note } = this.#passed;
    for (const event of codec.decodeReply(json, note)) if (event.type !== "error") running.addEvent(event);
    return text;
  }

  stages(answer: Answer, out: Sink<SseFrame>) {
    const { codec, context, running, note } = this.#passed;
    const { record } = running;
    const client = codec.fixStream(context, note)(out);
    /** How the current frame ends the stream, if it does. */
    let end: ReplyEvent | undefined;
    const reader = codec.decodeStream(
      context,
      note,
    )({
      push(event) {
        if (event.type !== "error" || end?.type === "error") running.addEvent(event);
      },
      end() {},
    });
    const fail = (error: Omit<ReplyError, "type">) => {
      if (record.isOver) return;
      const event = { type: "error" as const, ...error };
      client.fail(event);
      running.addEvent(event);
    };
    const bytes = readFrames(answer, {
      push(frame) {
        if (frame.data && frame.data !== "[DONE]" && !isObject(jsonOf(frame))) return fail(invalidEventOf("JSON"));
        end = codec.endIn?.(frame);
        reader.push(frame);
        // The record gets the end of the stream also if the decoder could not follow it.
        if (end && !record.isOver) running.addEvent(end);
        out.push(frame);
      },
      end: () => fail(cutReply),
    });
    return { body: answer.body, bytes, client: { keepAlive: client.keepAlive, fail } };
  }
}
