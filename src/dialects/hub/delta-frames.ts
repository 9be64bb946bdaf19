/**
 * The fast path for deltas. Most frames of a stream differ from the one before only in the delta's text, so they are read
 * without the parser and written without the serializer. Any other frame takes the plain way, with the same result.
 */
import { unescaped } from "../../json";
import type { FrameTemplate } from "../../net/frame-template";
import { type FrameStage, type SseFrame, TextFrame } from "../../net/sse";
import type { Sink, Stage } from "../../net/stream";
import type { JsonObject } from "./conversation";
import { readDelta } from "./repeated-delta";
import type { Block, ReplyEvent } from "./reply";

// ── Reading ──

/**
 * A decoder that sees a frame only if it is more than another delta of the same text.
 * @param decode Its memory must not depend on a delta's text, except in blocks of the kind `except`.
 */
export function readDeltas(decode: Stage<SseFrame, ReplyEvent>, except?: Block["kind"]): FrameStage<ReplyEvent> {
  return (next) => {
    let kind: Block["kind"] | undefined;
    let count = 0;
    let last: ReplyEvent | undefined;
    /** The last frame, until somebody asks for its template. */
    let candidate: SseFrame | undefined;
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
        if (frame.texts) return pushDeltas(frame.texts, next);
        count = 0;
        candidate = frame;
        template = undefined;
        decoder.push(frame);
      },
      // Made only where it is asked for: where frames are passed on, nobody does.
      template() {
        if (candidate && count === 1 && last?.type === "block-delta" && kind !== except)
          template = readDelta(candidate, last.text);
        candidate = undefined;
        return template;
      },
      end: () => decoder.end(),
    };
  };
}

function pushDeltas(texts: readonly string[], next: Sink<ReplyEvent>): void {
  for (const inside of texts) {
    const text = textOf(inside);
    if (text !== "") next.push({ type: "block-delta", text });
  }
}

const textOf = (inside: string): string => (inside.includes("\\") ? (unescaped(inside) ?? "") : inside);

// ── Writing ──

/** Stands for the delta's text in an event; no client and no upstream can know it. */
export const textPlace = crypto.randomUUID();

/** Stands for a number that counts up. */
export const numberPlace = crypto.randomUUID();

/** A writer of frames that differ only in the text, and in the number if the event has one. */
export function writeDeltas(event: string | undefined, json: JsonObject): (text: string, number?: number) => SseFrame {
  const name = event === undefined ? "" : `event: ${event}\n`;
  const [before = "", after = ""] = `${name}data: ${JSON.stringify(json)}\n\n`.split(textPlace);
  const [head = "", middle] = before.split(JSON.stringify(numberPlace));
  if (middle === undefined) return (text) => new TextFrame(`${before}${escapedText(text)}${after}`);
  return (text, number) => new TextFrame(`${head}${number}${middle}${escapedText(text)}${after}`);
}

/** The text as JSON has it between the quotes. */
const escapedText = (text: string): string => (needsEscapes.test(text) ? JSON.stringify(text).slice(1, -1) : text);

/** `JSON.stringify` escapes half of a surrogate pair too. */
const needsEscapes = /["\\\0-\x1f\ud800-\udfff]/;
