/**
 * The two forms of a stream: events with `alt=sse`, else one JSON array. Google's packages read neither comments nor empty
 * events everywhere, so silence is filled with white space in front of the next JSON.
 */
import { jsonFrame, rawFrame, type SseFrame } from "../../lib/net/stream/sse";
import type { Conversation, JsonObject } from "../hub/conversation";

export interface StreamForm {
  /** The content type, if it is not an event stream. */
  type?: string;
  /** @param frame An event with one reply as its data. */
  frame(frame: SseFrame): SseFrame;
  /** The last frame. */
  last(json: JsonObject): SseFrame;
  /** What may come at any time between frames, and means nothing. */
  keepAlive(): SseFrame;
}

const isArray = ({ extras }: Conversation): boolean => extras?.google?.alt !== "sse";

export const streamForm = (conversation: Conversation): StreamForm =>
  isArray(conversation) ? arrayForm() : eventForm();

function eventForm(): StreamForm {
  /** The line of the next event has begun. */
  let isOpen = false;
  const frame = (frame: SseFrame): SseFrame => {
    if (!isOpen) return frame;
    isOpen = false;
    return rawFrame(`${frame.data}\n\n`);
  };
  return {
    frame,
    last: (json) => frame(jsonFrame(json)),
    keepAlive() {
      const text = isOpen ? " " : "data: ";
      isOpen = true;
      return rawFrame(text);
    },
  };
}

function arrayForm(): StreamForm {
  let isBegun = false;
  const open = () => {
    const text = isBegun ? ",\n" : "[";
    isBegun = true;
    return text;
  };
  return {
    type: "application/json; charset=utf-8",
    frame: ({ data }) => rawFrame(`${open()}${data}`),
    last: (json) => rawFrame(`${open()}${JSON.stringify(json)}]\n`),
    keepAlive: () => rawFrame("\n"),
  };
}
