/** Two changes of one text, each made without the other, as one; as long as they touch different lines. */
import { compareLines } from "./diff";

interface Hunk {
  /** Lines of the text that both began with. */
  start: number;
  end: number;
  instead: string[];
}

/** @returns Undefined where both changed the same lines. */
export function mergeTexts(base: string, one: string, other: string): string | undefined {
  const lines = split(base);
  const [ours, theirs] = [hunks(lines, split(one)), hunks(lines, split(other))];
  if (ours.some((hunk) => theirs.some((their) => clash(hunk, their)))) return undefined;
  const merged: string[] = [];
  let from = 0;
  for (const { start, end, instead } of [...ours, ...theirs].toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    merged.push(...lines.slice(from, start), ...instead);
    from = end;
  }
  merged.push(...lines.slice(from));
  const eol = base.includes("\r\n") ? "\r\n" : "\n";
  return merged.map((line, at) => (at < merged.length - 1 && !line.endsWith("\n") ? line + eol : line)).join("");
}

/** With their endings: a last line without one is another line. */
const split = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

function hunks(before: string[], after: string[]): Hunk[] {
  const found: Hunk[] = [];
  let at = 0;
  let open: Hunk | undefined;
  for (const { mark, text } of compareLines(before, after)) {
    if (mark === " ") open = undefined;
    else if (!open) {
      open = { start: at, end: at, instead: [] };
      found.push(open);
    }
    if (mark === "+") open?.instead.push(text);
    if (mark !== "+") at++;
    if (mark === "-" && open) open.end = at;
  }
  return found;
}

/** What is put in at the edge of what the other changed is beside it; two at one place have no order. */
function clash(one: Hunk, other: Hunk): boolean {
  if (one.start === one.end && other.start === other.end) return one.start === other.start;
  return one.start < other.end && other.start < one.end;
}
