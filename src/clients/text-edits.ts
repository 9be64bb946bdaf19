/** Helpers of the three formats: line endings, line starts and edits. */
import { spliced, type TextEdit } from "../net/json/json-edit";

/** The line ending of the first line. */
export const lineEnding = (text: string): string => (/\r?\n/.exec(text)?.[0] === "\r\n" ? "\r\n" : "\n");

/** The text with a final line ending, unless it is empty. */
export const ended = (text: string): string => (text === "" || text.endsWith("\n") ? text : text + lineEnding(text));

/** From 1. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split("\n").length;

/** Applies all changes at once. They must not overlap; changes at the same place keep their order. */
export const applyEdits = (text: string, changes: readonly TextEdit[]): string =>
  spliced(
    text,
    changes.toSorted((a, b) => a.start - b.start || a.end - b.end),
  );

/** Maximum characters to parse: about a second. */
const maxRead = 2_000_000;

/**
 * The first line of the statement that cannot be parsed, for parsers that do not report it. Parses ever longer prefixes
 * of the text: a prefix may fail because it ends inside a statement, so the longest one that parses counts.
 * @returns Undefined if the text is too long to be parsed that often.
 */
export function faultLine(text: string, parse: (text: string) => unknown): number | undefined {
  const lines = text.split("\n");
  if ((lines.length * text.length) / 2 > maxRead) return undefined;
  let good = 0;
  for (let count = 1; count < lines.length; count++) if (reads(lines.slice(0, count).join("\n"), parse)) good = count;
  return good + 1;
}

function reads(text: string, parse: (text: string) => unknown): boolean {
  try {
    parse(text);
    return true;
  } catch {
    return false;
  }
}
