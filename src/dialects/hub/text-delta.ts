/**
 * Most frames of a stream differ from the one before in a single string: the next words. Such a frame need not be
 * parsed, only compared: what stands where the words stood is a JSON string, or the frame is no repeat.
 */
import { parseSpelt } from "../../json";
import { jsonOf, type SseFrame } from "../../net/sse";
import type { JsonObject } from "./conversation";

/** The one string that the next frames will spell differently, by the object that holds it. */
export type TextLeaf = [holder: JsonObject, key: string];

/**
 * The JSON of frame after frame; undefined for what is no JSON.
 * Repeats are one object, each time with other words in it: use it before the next frame is read.
 */
export function deltaReader(leafOf: (json: unknown) => TextLeaf | undefined): (frame: SseFrame) => unknown {
  /** What stood before and behind the words of the last frame that was parsed. */
  let around: { before: string; after: string } | undefined;
  /** An object of our own, once there was a repeat: nobody else's frame may change under its hands. */
  let own: { json: unknown; leaf: TextLeaf } | undefined;

  return (frame) => {
    const data = frame.data ?? "";
    const words = around && wordsBetween(around, data);
    if (words !== undefined) {
      own ??= ownCopy(data, leafOf);
      if (own) {
        own.leaf[0][own.leaf[1]] = words;
        return own.json;
      }
    }
    const json = jsonOf(frame);
    const leaf = leafOf(json);
    around = leaf && surroundings(data, leaf);
    own = undefined;
    return json;
  };
}

function ownCopy(data: string, leafOf: (json: unknown) => TextLeaf | undefined) {
  const json = parseSpelt(data);
  const leaf = leafOf(json);
  return leaf && { json, leaf };
}

function surroundings(data: string, [holder, key]: TextLeaf) {
  const member = `${JSON.stringify(key)}:`;
  const serialized = member + JSON.stringify(holder[key]);
  const at = data.indexOf(serialized);
  // There twice, or spelt unlike we would: which string the words are cannot be told.
  if (at === -1 || data.indexOf(serialized, at + 1) !== -1) return undefined;
  return { before: data.slice(0, at + member.length + 1), after: data.slice(at + serialized.length - 1) };
}

function wordsBetween({ before, after }: { before: string; after: string }, data: string): string | undefined {
  const [start, end] = [before.length, data.length - after.length];
  if (end < start || !data.startsWith(before) || !data.endsWith(after)) return undefined;
  for (let at = start; at < end; at++) {
    const code = data.charCodeAt(at);
    if (code < 32 || code === 34 || code === 92) return unescaped(data.slice(start, end));
  }
  return data.slice(start, end);
}

/** The text of the inside of a JSON string; undefined when it is more than that. */
function unescaped(words: string): string | undefined {
  try {
    return JSON.parse(`"${words}"`);
  } catch {
    return undefined;
  }
}
