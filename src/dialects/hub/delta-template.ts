/** Most frames of a stream differ from the one before in the next words alone: what such a frame looks like. */
import type { DeltaTemplate, SseFrame } from "../../net/sse";

/** The frame's text without its words, its number and its padding; undefined where it cannot be told what they are. */
export function deltaTemplate({ event, data = "", bytes }: SseFrame, words: string): DeltaTemplate | undefined {
  const before = event === undefined ? "data: " : `event: ${event}\ndata: `;
  // Spelt in another way, or not in ASCII.
  if (before.length + data.length + 2 !== bytes?.length) return undefined;
  const serialized = JSON.stringify(words);
  const at = data.indexOf(serialized);
  // There twice, or spelt unlike we would: which string the words are cannot be told. A member's name is no value.
  if (at < 1 || data[at - 1] !== ":" || data.indexOf(serialized, at + 1) !== -1) return undefined;
  const holes = [{ start: at + 1, end: at + serialized.length - 1 }];
  // Quotes within a string are escaped: no text can look like these.
  for (const { 0: found, 1: number, 2: padding = "", index } of data.matchAll(alsoDiffering))
    holes.push({ start: index + (number ?? padding).length, end: index + found.length });
  holes.sort((one, other) => one.start - other.start);
  const pieces: string[] = [];
  let from = 0;
  for (const { start, end } of holes) {
    pieces.push(data.slice(from, start));
    from = end;
  }
  return [before + pieces[0], ...pieces.slice(1), `${data.slice(from)}\n\n`];
}

const alsoDiffering = /("sequence_number":)\d+|("obfuscation":")[^"\\]*/g;
