/** Most frames of a stream differ from the previous one only in the delta's text: finds what such frames have in common. */
import type { DeltaTemplate, SseFrame } from "../../net/sse";

/** The frame without its delta text, sequence number and padding; undefined if the delta text cannot be located. */
export function deltaTemplate({ event, data = "", bytes }: SseFrame, text: string): DeltaTemplate | undefined {
  const before = event === undefined ? "data: " : `event: ${event}\ndata: `;
  // The frame is formatted differently, or is not ASCII.
  if (before.length + data.length + 2 !== bytes?.length) return undefined;
  const serialized = JSON.stringify(text);
  const at = data.indexOf(serialized);
  // Found twice, or serialized differently: the text cannot be located. A match must be a value, not a key.
  if (at < 1 || data[at - 1] !== ":" || data.indexOf(serialized, at + 1) !== -1) return undefined;
  const holes = [{ start: at + 1, end: at + serialized.length - 1 }];
  // Quotes inside a JSON string are escaped, so no text can match these keys.
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
