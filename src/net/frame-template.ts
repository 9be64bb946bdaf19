/** Finds consecutive frames that differ only in known places, and rewrites them at once, without decoding or parsing any. */

/** What such frames have in common; all of it is ASCII. */
export interface FrameTemplate {
  /**
   * The constant pieces of a frame's text, its blank line included. Between two pieces there is a gap: the inside of a
   * JSON string if the first piece ends with a quote, else a whole number.
   */
  pieces: readonly string[];
  /** From the first to the last; empty where the frames stay as they are. */
  edits: readonly FrameEdit[];
  /** The number of the gap whose text is joined for a reader that needs all of it; missing where nobody does. */
  joinedGap?: number;
}

/** Replaces the text from one place to another, each a position in a piece. A gap between the two is dropped. */
export interface FrameEdit {
  startPiece: number;
  start: number;
  endPiece: number;
  end: number;
  text: string;
}

export interface FrameRun {
  /** The position behind the last frame. */
  end: number;
  /** The last frame; with the texts of all where they are joined. */
  frame: string;
  /** The frames with their edits; undefined where there are none. */
  edited?: string;
}

/** The frames at `start` that match the template; undefined if there is none. */
export function matchRun(
  text: string,
  start: number,
  { pieces, edits, joinedGap }: FrameTemplate,
): FrameRun | undefined {
  /** Where each piece starts. */
  const starts: number[] = [];
  let last = start;
  let end = start;
  let edited = "";
  let copied = start;
  let joined = "";
  for (let found = matchEnd(text, start, pieces, starts); found !== -1; found = matchEnd(text, end, pieces, starts)) {
    last = end;
    end = found;
    for (const edit of edits) {
      edited += text.slice(copied, starts[edit.startPiece]! + edit.start) + edit.text;
      copied = starts[edit.endPiece]! + edit.end;
    }
    if (joinedGap !== undefined)
      joined += text.slice(starts[joinedGap]! + pieces[joinedGap]!.length, starts[joinedGap + 1]);
  }
  if (end === start) return undefined;
  const frame =
    joinedGap === undefined ? text.slice(last, end) : withGap(text.slice(last, end), pieces, joinedGap, joined);
  return edits.length === 0 ? { end, frame } : { end, frame, edited: edited + text.slice(copied, end) };
}

/** A frame that matches the pieces, with another text in a gap. */
function withGap(frame: string, pieces: readonly string[], gap: number, text: string): string {
  const starts: number[] = [];
  matchEnd(frame, 0, pieces, starts);
  return frame.slice(0, starts[gap]! + pieces[gap]!.length) + text + frame.slice(starts[gap + 1]);
}

/**
 * The end of a frame that matches the pieces; -1 when it does not.
 * @param starts Gets the start of each piece.
 */
function matchEnd(text: string, start: number, pieces: readonly string[], starts: number[]): number {
  let at = start;
  for (let number = 0; number < pieces.length; number++) {
    const piece = pieces[number]!;
    if (number > 0) at = text.charCodeAt(at - 1) === 34 ? insideEnd(text, at) : numberEnd(text, at);
    if (!text.startsWith(piece, at)) return -1;
    starts[number] = at;
    at += piece.length;
  }
  return at;
}

/** The position of the quote that ends a JSON string; for an invalid string, of the first invalid character. */
function insideEnd(text: string, start: number): number {
  let at = start;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 34 || code < 32) return at;
    if (code !== 92) continue;
    escaped.lastIndex = at;
    if (!escaped.test(text)) return at;
    at = escaped.lastIndex - 1;
  }
  return at;
}

const escaped = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

function numberEnd(text: string, start: number): number {
  let at = start;
  for (let code = text.charCodeAt(at); code >= 48 && code <= 57; code = text.charCodeAt(at)) at++;
  // JSON has no numbers without digits or with leading zeros.
  return at === start || (text.charCodeAt(start) === 48 && at > start + 1) ? text.length : at;
}
