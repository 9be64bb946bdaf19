/** A configured provider speaks the messages dialect: every byte is passed on as it came, both ways. */

import { codecs } from "../dialects/codecs";
import { cutReply } from "../dialects/hub/block-lifecycle";
import type { ReplyError, ReplyEvent } from "../dialects/hub/reply";
import { isObject } from "../json";
import { jsonOf, readSse } from "../net/stream/sse";
import { concealedFrame } from "./conceal";
import type { Incoming } from "./incoming";
import type { RequestRecord } from "./request-record";
import type { UpstreamCall } from "./upstream-call";

/**
 * The decoder only reads along for the record and ignores what it does not know. A stream that is cut off or contains an
 * event that is not JSON ends with an error.
 * @param who Who is called, for sentences.
 */
export function providerPassthrough(incoming: Incoming, record: RequestRecord, who: string): UpstreamCall {
  const codec = codecs.messages;
  return {
    who,
    body: incoming.bytes,
    stream: incoming.stream,
    headers: {},
    full(text, json) {
      for (const event of codec.decodeReply(json)) if (event.type !== "error") record.addEvent(event);
      return text;
    },
    stages({ body }, out) {
      const client = codec.fixStream(codec.replyContext(incoming.body), record.addFixup)(out);
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
        body,
        client: { keepAlive: client.keepAlive, fail },
        bytes: readSse({
          push(frame) {
            if (frame.data && frame.data !== "[DONE]" && !isObject(jsonOf(frame))) return fail(invalidEvent(who));
            end = codec.endIn?.(frame);
            reader.push(frame);
            // Where the decoder could not follow the stream, the record still gets its end.
            if (end && !record.isOver) record.addEvent(end);
            out.push(end?.type === "error" ? concealedFrame(frame, record.conceal) : frame);
          },
          end: () => fail(cutReply),
        }),
      };
    },
  };
}

const invalidEvent = (who: string) => ({ code: "upstream_invalid", message: `${who} sent an event that is not JSON.` });
