/** Errors in the middle of a stream may repeat a credential of the owner. Only they are looked at: other frames pass unread. */
import type { ReplyError } from "../dialects/hub/reply";
import { isObject } from "../json";
import { jsonFrame, jsonOf, type SseFrame } from "../net/stream/sse";
import type { Sink } from "../net/stream/stream";

/** Removes credentials from a text. */
interface Concealer {
  conceal(text: string): string;
}

export const concealedError = (error: ReplyError, by: Concealer): ReplyError => ({
  ...error,
  code: by.conceal(error.code),
  message: by.conceal(error.message),
});

/** The frame of an error without secrets; the same one if it has none. */
export function concealedFrame(frame: SseFrame, by: Concealer): SseFrame {
  const json = jsonOf(frame);
  if (!isObject(json)) return frame;
  let hasSecret = false;
  // Each text by itself: across the quotes of JSON, the shape of a secret could take a whole object.
  const shown = JSON.stringify(json, (_name, value: unknown) => {
    if (typeof value !== "string") return value;
    const concealed = by.conceal(value);
    hasSecret ||= concealed !== value;
    return concealed;
  });
  return hasSecret ? jsonFrame(JSON.parse(shown), frame.event) : frame;
}

/** Frames on their way to `next`: from the error on, of which it is told, they hold no secret; those before pass unread. */
export class ConcealedFrames implements Sink<SseFrame> {
  hasFailed = false;

  constructor(
    private readonly by: Concealer,
    private readonly next: Sink<SseFrame>,
  ) {}

  push(frame: SseFrame): void {
    this.next.push(this.hasFailed ? concealedFrame(frame, this.by) : frame);
  }

  end(): void {
    this.next.end();
  }
}
