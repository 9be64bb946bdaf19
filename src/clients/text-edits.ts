/** What the three formats share: how a text's lines end, and where they begin. */

/** As the text's first line ends. */
export const lineEnding = (text: string): string => (/\r?\n/.exec(text)?.[0] === "\r\n" ? "\r\n" : "\n");

/** The same text with a line ending as its last character, unless it is empty. */
export const ended = (text: string): string => (text === "" || text.endsWith("\n") ? text : text + lineEnding(text));

/** From 1. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split("\n").length;

export interface TextEdit {
  start: number;
  end: number;
  text: string;
}

/** All changes at once; they must not overlap. Of two at one place the first comes first. */
export function applyEdits(text: string, changes: readonly TextEdit[]): string {
  const inOrder = changes.toSorted((a, b) => a.start - b.start || a.end - b.end);
  let from = 0;
  let result = "";
  for (const { start, end, text: put } of inOrder) {
    result += text.slice(from, start) + put;
    from = end;
  }
  return result + text.slice(from);
}

/** Characters that are read to find a line: about a second's work. */
const maxRead = 2_000_000;

/**
 * The first line of the statement that cannot be parsed, for parsers that do not report it. Parses ever longer prefixes
 * of the text: a prefix may fail because it ends within a statement, so the longest one that parses counts.
 * @returns Undefined for a text that is too long for so many readings.
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
