/** Same dialect: the client's bytes go up and the upstream's bytes come down, changed by the named fixups only, or not at all. */

import { type Codec, codecs, type Passage, type TranslationOptions } from "../../dialects/codecs";
import type { Beat } from "../../dialects/hub/beat";
import { cutReply, invalidEventOf } from "../../dialects/hub/block-lifecycle";
import type { Dialect, JsonObject } from "../../dialects/hub/conversation";
import type { ReplyEvent, ReplyFailure } from "../../dialects/hub/reply";
import { unfollowed } from "../../dialects/hub/upstream-stream";
import { isObject } from "../../lib/json";
import { jsonOf, type SseFrame } from "../../lib/net/stream/sse";
import type { Stage } from "../../lib/net/stream/stream";
import type { Exchange } from "./exchange";
import { editIncoming } from "./incoming";
import { type ReplyReader, ReplyWay } from "./reply";
import { needsStream, type Target, whoOf } from "./target";
import type { UpstreamCall } from "./upstream-call";

type PassedTarget = Target & { dialect: Dialect };

/** A full reply that the model gives only as a stream is requested as one, and collected. */
export function passthrough(exchange: Exchange, target: PassedTarget, options: TranslationOptions): UpstreamCall {
  const { incoming } = exchange;
  const isCollected = !incoming.stream && needsStream(exchange.outline.maxTokens, target);
  const wanted = isCollected ? { ...incoming.body, stream: true } : incoming.body;
  const { body: sent, headers } = prepared(exchange, target, options, wanted);
  const who = whoOf(target);
  const reply = new ReplyWay({ running: exchange.running, who, ...passed(exchange, target) });
  return { who, body: sent, stream: incoming.stream || isCollected, headers, reply };
}

/** At a path of the provider's own not a byte is changed. */
export function verbatim(exchange: Exchange, target: PassedTarget): UpstreamCall {
  const { bytes, stream } = exchange.incoming;
  const who = whoOf(target);
  const reply = new ReplyWay({ running: exchange.running, who, ...untouched(exchange, target) });
  return { who, body: bytes, stream, headers: {}, reply };
}

/** The body and headers to send. @param wanted The client's body, with `stream` if a full reply is to be collected. */
function prepared(
  { incoming, book, headers: clientHeaders }: Exchange,
  target: PassedTarget,
  options: TranslationOptions,
  wanted: JsonObject,
) {
  const codec = codecs[target.dialect];
  const body = codec.fixRequest(wanted, target.upstreamModel, options);
  if (wanted !== incoming.body) book.addFixup("stream-gathered");
  // A provider gets the client's own headers of the dialect.
  const headers = target.provider
    ? undefined
    : codec.requestHeaders?.(clientHeaders, body, target.upstreamModel, options);
  return { body: editIncoming(incoming, body), headers: headers ?? {} };
}

/** The reply in the client's own dialect, passed on with the fixups. */
export function passed({ book, incoming }: Exchange, { dialect }: PassedTarget) {
  const passage = codecs[dialect].passOn(incoming.body, book, !incoming.stream);
  return { reader: passage, passed: passage };
}

/**
 * The reply of which not a byte is changed. The reader ignores what it does not know. A stream that is cut off or contains an
 * event that is not JSON ends with an error.
 */
function untouched({ book, incoming }: Exchange, { dialect }: PassedTarget) {
  const codec = codecs[dialect];
  const isNoError = ({ type }: ReplyEvent) => type !== "error";
  const passage = codec.passOn(incoming.body, book);
  const reader: ReplyReader = {
    readStream: framesAsTheyAre(codec),
    readFull(json) {
      const { events, lost } = passage.readFull(json);
      return { events: events.filter(isNoError), lost };
    },
  };
  const asItIs: Pick<Passage, "stream" | "full" | "free"> = {
    free: passage.free,
    stream(out) {
      const client = passage.stream(out);
      return {
        push(beat) {
          if (beat.lost) book.addFixup(unfollowed);
          if (beat.frame) out.push(beat.frame);
          else client.push(beat);
        },
        end: () => out.end(),
        keepAlive: () => client.keepAlive(),
        fail: (error) => client.fail(error),
      };
    },
    full() {
      let text = "";
      return {
        push({ frame, lost }) {
          if (lost) book.addFixup(unfollowed);
          text = frame?.data ?? "";
        },
        end() {},
        text: () => text,
      };
    },
  };
  return { reader, passed: asItIs };
}

/** The frames as they arrived. Whatever the reader takes for an error, the stream goes on until a frame says that it has ended. */
const framesAsTheyAre =
  (codec: Codec): Stage<SseFrame, Beat> =>
  (next) => {
    let isOver = false;
    /** What was read of the present frame. */
    let read: Beat[] = [];
    const reader = codec.decodeStream()({ push: (beat) => void read.push(beat), end() {} });
    const fail = (error: ReplyFailure) => {
      if (!isOver) next.push({ events: [{ type: "error", ...error }] });
      isOver = true;
    };
    return {
      push(frame) {
        if (frame.data && frame.data !== "[DONE]" && !isObject(jsonOf(frame))) return fail(invalidEventOf("JSON"));
        const end = codec.endIn?.(frame);
        read = [];
        reader.push(frame);
        const events = read
          .flatMap((beat) => beat.events)
          .filter(({ type }) => type !== "error" || end?.type === "error");
        if (end && !isOver && !events.some(isEnd)) events.push(end);
        isOver ||= events.some(isEnd);
        const lost = read.find((beat) => beat.lost)?.lost;
        next.push({ frame, type: "", json: {}, isLast: false, events, lost });
      },
      end: () => fail(cutReply),
    };
  };

const isEnd = ({ type }: ReplyEvent): boolean => type === "finish" || type === "error";
