/** Most frames of a stream differ from the one before only in the delta's text: finds what such frames have in common. */
import { type FrameEdit, FrameTemplate, type TemplateParts } from "../../net/frame-template";
import type { SseFrame } from "../../net/sse";

/**
 * The template of frames like this one, which are passed on; undefined if its delta text cannot be located.
 * @param sent What the client got: the frame itself, or a copy with edits in its text.
 * @param isJoined Whether somebody needs the deltas.
 */
export function repeatedDelta(
  frame: SseFrame,
  sent: SseFrame | undefined,
  text: string,
  isJoined = false,
): FrameTemplate | undefined {
  if (sent !== frame && sent?.copyOf !== frame) return undefined;
  const whole = wholeText(frame);
  const gaps = gapsIn(whole, text);
  if (!gaps) return undefined;
  const reads = isJoined ? "joined" : undefined;
  if (sent === frame) return templateOf({ pieces: around(whole, gaps), edits: [], textGap: textGapOf(gaps), reads });
  const sentText = wholeText(sent);
  const sentGaps = gapsIn(sentText, text)?.filter(({ key }) => gaps.some((gap) => gap.key === key));
  if (!sentGaps || !areSame(gaps, sentGaps)) return undefined;
  const replaced = replacedId(whole, sentText);
  const all = replaced ? [...gaps, replaced].sort(byPosition) : gaps;
  const pieces = around(whole, all);
  const edits = editsOf(pieces, around(sentText, sentGaps), replaced ? all.indexOf(replaced) : -1);
  return templateOf({ pieces, edits, textGap: textGapOf(all), reads });
}

/** The template of frames like this one, whose deltas alone are read; undefined if its delta text cannot be located. */
export function readDelta(frame: SseFrame, text: string): FrameTemplate | undefined {
  const whole = wholeText(frame);
  const gaps = gapsIn(whole, text, alsoUnread);
  const pieces = gaps && around(whole, gaps);
  // Another string that holds the same text, with an escape, would look like something else.
  if (!pieces || pieces.some((piece) => piece.includes("\\"))) return undefined;
  return templateOf({ pieces, edits: [], textGap: textGapOf(gaps), reads: "each" });
}

const textGapOf = (gaps: Gap[]): number => gaps.findIndex(({ isText }) => isText);

/** Only the gaps may have other characters: a template is compared with bytes. */
function templateOf(parts: TemplateParts): FrameTemplate | undefined {
  const text = parts.pieces.join("") + parts.edits.map((edit) => edit.text).join("");
  return Buffer.byteLength(text) === text.length ? new FrameTemplate(parts) : undefined;
}

/**
 * The edits that make one frame of the other.
 * @param dropped The number of the gap that is not in the frame that was sent.
 */
function editsOf(pieces: string[], sent: string[], dropped: number): FrameEdit[] {
  return sent.flatMap((piece, number) => {
    const startPiece = dropped !== -1 && number > dropped ? number + 1 : number;
    const endPiece = number === dropped ? number + 1 : startPiece;
    const before = pieces[startPiece]!;
    const after = pieces[endPiece]!;
    if (before === piece && startPiece === endPiece) return [];
    const start = commonLength(before, piece, (length) => before[length] === piece[length]);
    const left = startPiece === endPiece ? after.slice(start) : after;
    const kept = piece.slice(start);
    const tail = commonLength(left, kept, (length) => left.at(-1 - length) === kept.at(-1 - length));
    const text = kept.slice(0, kept.length - tail);
    return [{ startPiece, start, endPiece, end: after.length - tail, text }];
  });
}

/** How many characters are the same, counted from where the test counts. */
function commonLength(one: string, other: string, isSameAt: (length: number) => boolean): number {
  const most = Math.min(one.length, other.length);
  let length = 0;
  while (length < most && isSameAt(length)) length++;
  return length;
}

/** A part of a frame's text that differs from frame to frame. */
interface Gap {
  key: string;
  value: string;
  start: number;
  /** It holds the delta. */
  isText?: true;
}

const wholeText = ({ event, data = "" }: SseFrame): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`;

/**
 * The delta's text, and the numbers and padding that differ as well. No fixup depends on any of them.
 * Quotes inside a JSON string are escaped, so no text can match a key.
 */
function gapsIn(whole: string, text: string, others = alsoDiffering): Gap[] | undefined {
  const serialized = JSON.stringify(text);
  const at = whole.indexOf(serialized);
  // Found twice, or serialized differently: the text cannot be located.
  if (at === -1 || whole.indexOf(serialized, at + 1) !== -1) return undefined;
  const key = deltaKey.exec(whole.slice(Math.max(0, at - 24), at))?.[1];
  if (key === undefined) return undefined;
  const gaps: Gap[] = [{ key, value: serialized.slice(1, -1), start: at + 1, isText: true }];
  for (const { 0: found, 1: name, 2: number = "", 3: padding, 4: filler = "", index } of whole.matchAll(others)) {
    const value = number + filler;
    gaps.push({ key: name ?? padding ?? "", value, start: index + found.length - value.length });
  }
  return gaps.sort(byPosition);
}

/** The item's id, where the client was sent another one. */
function replacedId(whole: string, sent: string): Gap | undefined {
  const [from, to] = [itemId.exec(whole), itemId.exec(sent)];
  if (!from || from[1] === to?.[1]) return undefined;
  return { key: "item_id", value: from[1]!, start: from.index + from[0].length - from[1]!.length };
}

/** The text around the gaps. */
function around(whole: string, gaps: Gap[]): string[] {
  const starts = [0, ...gaps.map(({ start, value }) => start + value.length)];
  return starts.map((start, number) => whole.slice(start, gaps[number]?.start));
}

const areSame = (gaps: Gap[], others: Gap[]): boolean =>
  gaps.length === others.length &&
  gaps.every(({ key, value }, at) => others[at]!.key === key && others[at]!.value === value);

const byPosition = (one: Gap, other: Gap): number => one.start - other.start;

/** The members that hold a delta. */
const deltaKey =
  /"(content|refusal|reasoning_text|reasoning_content|reasoning|cot_summary|text|thinking|delta|arguments|partial_json)":$/;

const alsoDiffering =
  /"(sequence_number|created|check_offset|start_offset|end_offset)":(\d+)|"(obfuscation)":"([^"\\]*)/g;

/** What a decoder does not read either. */
const alsoUnread = new RegExp(alsoDiffering.source.replace("(obfuscation)", "(obfuscation|item_id)"), "g");

const itemId = /"item_id":"([^"\\]*)/;
