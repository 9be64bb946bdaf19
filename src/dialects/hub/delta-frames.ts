/** Writes deltas: the frames of a block differ only in their text, so the JSON around it is serialized once. */
import type { SseFrame } from "../../lib/net/stream/sse";
import type { JsonObject } from "./conversation";

/** Stands for the delta's text in an event; no client and no upstream can know it. */
export const textPlace = crypto.randomUUID();

/** Stands for a number that counts up. */
export const numberPlace = crypto.randomUUID();

/** A writer of frames that differ only in the text, and in the number if the event has one. */
export function writeDeltas(event: string | undefined, json: JsonObject): (text: string, number?: number) => SseFrame {
  const [before = "", after = ""] = JSON.stringify(json).split(textPlace);
  const [head = "", middle] = before.split(JSON.stringify(numberPlace));
  return (text, number) => {
    const beginning = middle === undefined ? before : `${head}${number}${middle}`;
    const data = `${beginning}${escapedText(text)}${after}`;
    return event === undefined ? { data } : { event, data };
  };
}

/** The text as JSON has it between the quotes. */
const escapedText = (text: string): string => (needsEscapes.test(text) ? JSON.stringify(text).slice(1, -1) : text);

/** `JSON.stringify` escapes half of a surrogate pair too. */
const needsEscapes = /["\\\0-\x1f\ud800-\udfff]/;
