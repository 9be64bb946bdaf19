/** A stream that is passed on is decoded for the record only; frames that add nothing to it are passed on unread. */

import { repeatedDelta } from "../dialects/hub/repeated-delta";
import type { Block, ReplyEvent } from "../dialects/hub/reply";
import type { FrameTemplate } from "../net/frame-template";
import { fromLatin1, type SseFrame, TextFrame } from "../net/sse";
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
    /**
     * To be called before a frame that has to be read, and before the end. The deltas of a call that were passed on unread
     * are decoded now, because its input must be complete in the end.
     * @returns All of them as one frame; undefined if there were none.
     */
    catchUp(): SseFrame | undefined {
      const joined = template?.takeJoined();
      if (joined === undefined) return undefined;
      const frame = new TextFrame(fromLatin1(joined));
      decoder.push(frame);
      return frame;
    },
    push(frame: SseFrame) {
      events = 0;
      delta = undefined;
      if (frame.template === undefined) decoder.push(frame);
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
