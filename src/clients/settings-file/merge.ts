/**
 * Merges two independent changes of one text, as long as they touch different lines. (node-diff3 would report a
 * conflict where two changes only touch each other; here an insertion next to a changed line is kept next to it.)
 */
import { type Hunk, hunksBetween } from "./diff";

/** @returns Undefined if both changed the same lines. */
export function mergeTexts(base: string, one: string, other: string): string | undefined {
  const lines = linesOf(base);
  const [ours, theirs] = [hunksBetween(lines, linesOf(one)), hunksBetween(lines, linesOf(other))];
  if (ours.some((our) => theirs.some((their) => clash(our, their)))) return undefined;
  const merged: string[] = [];
  let from = 0;
  for (const hunk of [...ours, ...theirs].toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    merged.push(...lines.slice(from, hunk.start), ...hunk.lines);
    from = hunk.end;
  }
  merged.push(...lines.slice(from));
  const eol = base.includes("\r\n") ? "\r\n" : "\n";
  return merged.map((line, at) => (at < merged.length - 1 && !line.endsWith("\n") ? line + eol : line)).join("");
}

/** With their line endings: a last line without one differs from the same line with one. */
const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** An insertion at the edge of a changed range does not clash with it; two insertions at one place do, as they have no order. */
function clash(one: Hunk, other: Hunk): boolean {
  if (one.start === one.end && other.start === other.end) return one.start === other.start;
  return one.start < other.end && other.start < one.end;
}
