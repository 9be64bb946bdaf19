/**
 * The fast path for deltas. Most frames of a stream differ from the one before only in the delta's text, so they are read
 * without the parser and written without the serializer. Any other frame takes the plain way, with the same result.
 */
import { isEscaped, unescaped } from "../../json";
import type { SseFrame } from "../../net/sse";
import type { Stage } from "../../net/stream";
import type { JsonObject } from "./conversation";
import type { Block, ReplyEvent } from "./reply";

// ── Reading ──

/**
 * A decoder that sees a frame only if it is more than another delta of the same text.
 * @param decode Its memory must not depend on a delta's text, except in blocks of the kind `except`.
 */
export function readDeltas(decode: Stage<SseFrame, ReplyEvent>, except?: Block["kind"]): Stage<SseFrame, ReplyEvent> {
  return (next) => {
    let kind: Block["kind"] | undefined;
    let count = 0;
    let last: ReplyEvent | undefined;
    let template: FrameTemplate | undefined;
    const decoder = decode({
      push(event) {
        count++;
        last = event;
        if (event.type === "block-start") kind = event.block.kind;
        next.push(event);
      },
      end: () => next.end(),
    });
    return {
      push(frame) {
        const text = template && deltaIn(frame, template);
        if (text !== undefined) {
          if (text !== "") next.push({ type: "block-delta", text });
          return;
        }
        count = 0;
        decoder.push(frame);
        template =
          count === 1 && last?.type === "block-delta" && kind !== except ? templateOf(frame, last.text) : undefined;
      },
      end: () => decoder.end(),
    };
  };
}

/** What is the same in all frames of one text. */
interface FrameTemplate {
  event: string | undefined;
  /**
   * The constant pieces of the data. Between two of them is a gap: the inside of a JSON string if the piece before it ends
   * with a quote, else a whole number.
   */
  pieces: readonly string[];
  /** The number of the gap that holds the delta's text. */
  textGap: number;
}

/** Undefined if the text cannot be located beyond doubt. */
function templateOf({ event, data = "" }: SseFrame, text: string): FrameTemplate | undefined {
  const serialized = JSON.stringify(text);
  const at = data.indexOf(serialized);
  const [before, after] = [data.slice(0, at), data.slice(at + serialized.length)];
  // Without a backslash elsewhere, another string with this text would look the same and be found as well.
  if (at === -1 || after.includes(serialized) || before.includes("\\") || after.includes("\\")) return undefined;
  const [left, right] = [before.split(ignored), after.split(ignored)];
  const pieces = [...left.slice(0, -1), `${left.at(-1)}"`, `"${right[0]}`, ...right.slice(1)];
  return { event, pieces, textGap: left.length - 1 };
}

/** Values that differ from frame to frame and that no decoder reads. Quotes in a string are escaped, so no text matches. */
const ignored =
  /(?<="(?:sequence_number|created|check_offset|start_offset|end_offset)":)\d+|(?<="(?:item_id|obfuscation)":")[^"]*/;

/** The frame's delta; undefined if it does not match the template or may not be valid JSON. */
function deltaIn({ event, data = "" }: SseFrame, template: FrameTemplate): string | undefined {
  const { pieces, textGap } = template;
  if (event !== template.event || !data.startsWith(pieces[0]!)) return undefined;
  let text: string | undefined;
  let at = pieces[0]!.length;
  for (let gap = 0; gap + 1 < pieces.length; gap++) {
    const end = data.charCodeAt(at - 1) === quote ? insideEnd(data, at) : numberEnd(data, at);
    if (end === -1 || !data.startsWith(pieces[gap + 1]!, end)) return undefined;
    if (data.charCodeAt(at - 1) === quote) {
      const inside = plainText(data.slice(at, end));
      if (inside === undefined) return undefined;
      if (gap === textGap) text = inside;
    }
    at = end + pieces[gap + 1]!.length;
  }
  return at === data.length ? text : undefined;
}

const quote = 34;

function insideEnd(data: string, start: number): number {
  let end = data.indexOf('"', start);
  while (end !== -1 && isEscaped(data, end)) end = data.indexOf('"', end + 1);
  return end;
}

function numberEnd(data: string, start: number): number {
  let end = start;
  for (let code = data.charCodeAt(end); code >= 48 && code <= 57; code = data.charCodeAt(end)) end++;
  // JSON has no numbers without digits or with leading zeros.
  return end === start || (data.charCodeAt(start) === 48 && end > start + 1) ? -1 : end;
}

const plainText = (inside: string): string | undefined => (needsParser.test(inside) ? unescaped(inside) : inside);

const needsParser = /[\\\0-\x1f]/;

// ── Writing ──

/** Stands for the delta's text in an event; no client and no upstream can know it. */
export const textPlace = crypto.randomUUID();

/** Stands for a number that counts up. */
export const numberPlace = crypto.randomUUID();

/** A writer of frames that differ only in the text, and in the number if the event has one. */
export function writeDeltas(event: string | undefined, json: JsonObject): (text: string, number?: number) => SseFrame {
  const [before = "", after = ""] = JSON.stringify(json).split(JSON.stringify(textPlace));
  const [head = "", middle] = before.split(JSON.stringify(numberPlace));
  const frameOf = (data: string): SseFrame => ({ event, data, isOneLine: true });
  if (middle === undefined) return (text) => frameOf(`${before}${JSON.stringify(text)}${after}`);
  return (text, number) => frameOf(`${head}${number}${middle}${JSON.stringify(text)}${after}`);
}
