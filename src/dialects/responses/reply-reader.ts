/** Reads replies of the responses dialect, full or as a stream. */
import { isObject } from "../../json";
import { jsonOf, type SseFrame } from "../../net/stream/sse";
import { collectInto, type Stage } from "../../net/stream/stream";
import { cutReply } from "../hub/block-lifecycle";
import type { ReplyEvent } from "../hub/reply";
import { invalidEvent, invalidReply } from "./errors";
import { ItemReader } from "./item-reader";
import { eventType } from "./raw-fields";

/** Reads a full reply. */
export function decodeReply(body: unknown): ReplyEvent[] {
  const events: ReplyEvent[] = [];
  const reader = new ItemReader(collectInto(events));
  if (!isObject(body) || (!isObject(body.error) && !Array.isArray(body.output))) reader.fail(invalidReply);
  else reader.terminate(isObject(body.error) ? "failed" : (body.status ?? "completed"), body, body);
  return events;
}

/** Reads a stream. */
export function decodeStream(): Stage<SseFrame, ReplyEvent> {
  return (next) => {
    const reader = new ItemReader(next);
    return {
      push(frame) {
        if (frame.data === undefined || frame.data === "[DONE]" || reader.ended) return;
        const event = jsonOf(frame);
        if (isObject(event)) reader.read(eventType(frame), event);
        else reader.fail(invalidEvent);
      },
      end() {
        reader.fail(cutReply);
        next.end();
      },
    };
  };
}
