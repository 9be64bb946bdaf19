/**
 * Most frames of a stream differ from the previous one in a single string: the delta's text. Such a frame is not parsed
 * but compared with the previous one; what differs must be the inside of one JSON string.
 */
import { parseSpelt, unescaped } from "../../json";
import { jsonOf, type SseFrame } from "../../net/sse";
import type { JsonObject } from "./conversation";

/** The one string that changes from frame to frame, by the object and key that hold it. */
export type TextSlot = [holder: JsonObject, key: string];

/**
 * Reads the JSON of one frame after the other; undefined for a frame that is not JSON.
 * Frames that differ only in the text return the same object, updated: use it before the next frame is read.
 */
export function deltaReader(findText: (json: unknown) => TextSlot | undefined): (frame: SseFrame) => unknown {
  /** What surrounds the text in the last frame that was parsed. */
  let around: { before: string; after: string } | undefined;
  /** The object that is updated: a copy, so that the object returned for the parsed frame never changes. */
  let own: { json: unknown; slot: TextSlot } | undefined;

  return (frame) => {
    const data = frame.data ?? "";
    const text = around && textBetween(around, data);
    if (text !== undefined) {
      own ??= ownCopy(data, findText);
      if (own) {
        own.slot[0][own.slot[1]] = text;
        return own.json;
      }
    }
    const json = jsonOf(frame);
    const slot = findText(json);
    around = slot && surroundings(data, slot);
    own = undefined;
    return json;
  };
}

function ownCopy(data: string, findText: (json: unknown) => TextSlot | undefined) {
  const json = parseSpelt(data);
  const slot = findText(json);
  return slot && { json, slot };
}

function surroundings(data: string, [holder, key]: TextSlot) {
  const member = `${JSON.stringify(key)}:`;
  const serialized = member + JSON.stringify(holder[key]);
  const at = data.indexOf(serialized);
  // Found twice, or serialized differently: the text cannot be located.
  if (at === -1 || data.indexOf(serialized, at + 1) !== -1) return undefined;
  return { before: data.slice(0, at + member.length + 1), after: data.slice(at + serialized.length - 1) };
}

function textBetween({ before, after }: { before: string; after: string }, data: string): string | undefined {
  const [start, end] = [before.length, data.length - after.length];
  if (end < start || !data.startsWith(before) || !data.endsWith(after)) return undefined;
  for (let at = start; at < end; at++) {
    const code = data.charCodeAt(at);
    if (code < 32 || code === 34 || code === 92) return unescaped(data.slice(start, end));
  }
  return data.slice(start, end);
}
