/** Errors in the middle of a stream may repeat a credential of the owner. Only they are looked at: other frames pass unread. */
import type { ReplyError, ReplyEvent } from "../dialects/hub/reply";
import { isObject } from "../json";
import { jsonFrame, jsonOf, type SseFrame } from "../net/stream/sse";
import type { Sink } from "../net/stream/stream";

type Conceal = (text: string) => string;

export const concealedError = (error: ReplyError, conceal: Conceal): ReplyError => ({
  ...error,
  code: conceal(error.code),
  message: conceal(error.message),
});

/** The frame of an error without secrets; the same one if it has none. */
export function concealedFrame(frame: SseFrame, conceal: Conceal): SseFrame {
  const json = jsonOf(frame);
  if (!isObject(json)) return frame;
  let hasSecret = false;
  // Each text by itself: across the quotes of JSON, the shape of a secret could take a whole object.
  const shown = JSON.stringify(json, (_name, value: unknown) => {
    if (typeof value !== "string") return value;
    const concealed = conceal(value);
    hasSecret ||= concealed !== value;
    return concealed;
  });
  return hasSecret ? jsonFrame(JSON.parse(shown), frame.event) : frame;
}

/**
 * Watches a stream for its error, so that the frames from there on hold no secret; the frames before pass unread.
 * @param events Gets the events of the stream.
 */
export function concealing(conceal: Conceal, events: Sink<ReplyEvent>) {
  let hasFailed = false;
  return {
    events: {
      push(event: ReplyEvent) {
        hasFailed ||= event.type === "error";
        events.push(event);
      },
      end: () => events.end(),
    },
    frame: (frame: SseFrame): SseFrame => (hasFailed ? concealedFrame(frame, conceal) : frame),
  };
}
