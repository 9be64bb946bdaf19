/**
 * The two forms of a stream: events with `alt=sse`, else one JSON array. Google's packages read neither comments nor empty
 * events everywhere, so silence is filled with white space in front of the next JSON.
 */
import type { SseFrame } from "../../net/sse";
import type { Conversation, JsonObject } from "../hub/conversation";

export interface StreamForm {
  /** The frame of one reply. @param data JSON in one line. */
  frame(data: string): SseFrame;
  /** The last frame. */
  last(json: JsonObject): SseFrame;
  /** What may come at any time between frames, and means nothing. */
  keepAlive(): SseFrame;
}

const isArray = ({ extras }: Conversation): boolean => extras?.google?.alt !== "sse";

export const streamType = (conversation: Conversation): string | undefined =>
  isArray(conversation) ? "application/json; charset=utf-8" : undefined;

export const streamForm = (conversation: Conversation): StreamForm =>
  isArray(conversation) ? arrayForm() : eventForm();

function eventForm(): StreamForm {
  /** The line of the next event has begun. */
  let isOpen = false;
  const frame = (data: string): SseFrame => {
    if (!isOpen) return { data };
    isOpen = false;
    return { bytes: encoder.encode(`${data}\n\n`) };
  };
  return {
    frame,
    last: (json) => frame(JSON.stringify(json)),
    keepAlive() {
      const text = isOpen ? " " : "data: ";
      isOpen = true;
      return { bytes: encoder.encode(text) };
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
    frame: (data) => ({ bytes: encoder.encode(`${open()}${data}`) }),
    last: (json) => ({ bytes: encoder.encode(`${open()}${JSON.stringify(json)}]\n`) }),
    keepAlive: () => ({ bytes: encoder.encode("\n") }),
  };
}

const encoder = new TextEncoder();
