/** A stream that is passed on is decoded for the record only; frames that add nothing to it are passed on unread. */

import { repeatedDelta } from "../dialects/hub/repeated-delta";
import type { Block, ReplyEvent } from "../dialects/hub/reply";
import type { FrameTemplate } from "../net/frame-template";
import type { SseFrame } from "../net/sse";
import type { Stage } from "../net/stream";

export function readAlong(decode: Stage<SseFrame, ReplyEvent>, onEvent: (event: ReplyEvent) => void) {
  let block: Block | undefined;
  let events = 0;
  let delta: string | undefined;
  let template: FrameTemplate | undefined;
  const isCall = () => block?.kind === "tool-call";
  const decoder = decode({
    push(event) {
      events++;
      if (event.type === "block-delta") delta = event.text;
      else if (event.type === "block-start") block = event.block;
      onEvent(event);
    },
    end() {},
  });
  return {
    push(frame: SseFrame) {
      events = 0;
      delta = undefined;
      if (frame.template === undefined) decoder.push(frame);
      // The deltas of a call are decoded together, because its input must be complete in the end.
      else if (isCall()) decoder.push(frame.template);
    },
    /** @param sent What the client got for the frame. */
    sent(frame: SseFrame, sent: SseFrame | undefined) {
      if (frame.template !== undefined) return;
      // Another delta of the same text adds nothing to the record and needs no other fixup.
      template = events === 1 && delta !== undefined ? repeatedDelta(frame, sent, delta, isCall()) : undefined;
    },
    template: () => template,
    /** What the client gets for the next frame may be another. */
    forget() {
      template = undefined;
    },
    end: () => decoder.end(),
  };
}
