/** Helpers of the three formats: line endings, line starts and edits. */
import { spliced, type TextEdit } from "../lib/net/json/json-edit";

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
