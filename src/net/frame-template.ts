/** Finds consecutive frames that differ only in known places, and rewrites them at once, without decoding or parsing any. */

/** What such frames have in common; all of it is ASCII. */
export interface TemplateParts {
  /**
   * The constant pieces of a frame's text, its blank line included. Between two pieces there is a gap: the inside of a
   * JSON string if the first piece ends with a quote, else a whole number.
   */
  pieces: readonly string[];
  /** From the first to the last; empty where the frames stay as they are. */
  edits: readonly FrameEdit[];
  /** The number of the gap that holds the delta's text. No edit drops it. */
  textGap: number;
  /** How a reader gets the texts: each with its run, or all together later. Nobody reads them if it is missing. */
  reads?: "each" | "joined";
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
  /** The last frame; empty where each text is read. */
  frame: string;
  /** The frames with their edits; undefined where there are none. */
  edited?: string;
  /** The text of each frame, as JSON has it between the quotes, where each is read. */
  texts?: string[];
}

/** For the frames of one stream. */
export class FrameTemplate {
  readonly #parts: TemplateParts;
  readonly #shape: Shape;
  /** Matches most frames with less work: it takes gaps for constant that have never changed. */
  #usual: Shape | undefined;
  /** What the gaps held in the last frame that `#usual` did not match; undefined where it has changed. */
  #values: (string | undefined)[] | undefined;
  /** The texts to be joined; the newest are not copied yet and keep their reads in memory. */
  #joined = "";
  #newest = "";
  #newestCount = 0;
  /** The last frame, before its text and after it. */
  #around: [before: string, after: string] | undefined;

  constructor(parts: TemplateParts) {
    this.#parts = parts;
    this.#shape = new Shape(parts);
  }

  /** Whether the frames go on as they are. */
  get keepsBytes(): boolean {
    return this.#parts.edits.length === 0 && this.#parts.reads !== "each";
  }

  /** The frames at `start` that match; undefined if there is none. */
  run(text: string, start: number): FrameRun | undefined {
    const { edits, reads } = this.#parts;
    const texts: string[] = [];
    let shape: Shape | undefined;
    let last = start;
    let textStart = start;
    let textEnd = start;
    let end = start;
    let edited = "";
    for (let found = this.#match(text, end); found; found = this.#match(text, end)) {
      if (edits.length > 0) edited = found.appendTo(edited, text, shape);
      if (reads) {
        textStart = found.textStart;
        textEnd = found.textEnd;
        const inside = text.slice(textStart, textEnd);
        if (reads === "each") texts.push(inside);
        else this.#join(inside);
      }
      shape = found;
      last = end;
      end = found.end;
    }
    if (!shape) return undefined;
    if (reads === "each") return { end, frame: "", texts };
    if (reads === "joined") this.#around = [text.slice(last, textStart), text.slice(textEnd, end)];
    const frame = text.slice(last, end);
    return edits.length === 0 ? { end, frame } : { end, frame, edited: edited + shape.lastPiece };
  }

  /** The last frame with the texts of all since the last call, as a read has them; undefined if there were none. */
  takeJoined(): string | undefined {
    if (!this.#around) return undefined;
    const [before, after] = this.#around;
    const frame = before + this.#joined + this.#newest + after;
    this.#around = undefined;
    this.#joined = "";
    this.#newest = "";
    return frame;
  }

  #join(text: string): void {
    this.#newest += text;
    this.#newestCount++;
    if (this.#newestCount < maxNewest) return;
    this.#joined += Buffer.from(this.#newest, "latin1").toString("latin1");
    this.#newest = "";
    this.#newestCount = 0;
  }

  #match(text: string, start: number): Shape | undefined {
    if (this.#usual?.matches(text, start)) return this.#usual;
    if (!this.#shape.matches(text, start)) return undefined;
    this.#learn(this.#shape.valuesIn(text));
    return this.#shape;
  }

  #learn(values: string[]): void {
    const before = this.#values;
    const { textGap } = this.#parts;
    this.#values = values.map((value, gap) =>
      gap === textGap || (before && before[gap] !== value) ? undefined : value,
    );
    this.#usual = new Shape(withConstants(this.#parts, this.#values));
  }
}

const maxNewest = 100;

/** The same parts with a constant in each gap that has a value. */
function withConstants({ pieces, edits, textGap }: TemplateParts, values: (string | undefined)[]): TemplateParts {
  const joined = [pieces[0]!];
  /** Where each piece begins among the joined ones. */
  const places = [{ piece: 0, at: 0 }];
  let gap = 0;
  for (const [number, value] of values.entries()) {
    const next = pieces[number + 1]!;
    if (number === textGap) gap = joined.length - 1;
    if (value === undefined) {
      places.push({ piece: joined.length, at: 0 });
      joined.push(next);
    } else {
      const before = joined.pop()! + value;
      places.push({ piece: joined.length, at: before.length });
      joined.push(before + next);
    }
  }
  return {
    pieces: joined,
    edits: edits.map(({ startPiece, start, endPiece, end, text }) => {
      const [from, to] = [places[startPiece]!, places[endPiece]!];
      return { startPiece: from.piece, start: from.at + start, endPiece: to.piece, end: to.at + end, text };
    }),
    textGap: gap,
  };
}

/** Pieces to compare, and those to write with the gaps between them. It remembers where it matched last. */
class Shape {
  end = 0;
  readonly #pieces: readonly string[];
  readonly #textGap: number;
  /** Where each piece was. */
  readonly #starts: number[];
  /** What is written: the first piece, a gap, the next piece, and so on. */
  readonly #written: readonly string[];
  readonly #writtenGaps: readonly number[];
  /** The end of one frame and the beginning of the next. */
  readonly #between: string;

  constructor({ pieces, edits, textGap }: TemplateParts) {
    this.#pieces = pieces;
    this.#textGap = textGap;
    this.#starts = pieces.map(() => 0);
    const { written, gaps } = writtenBy(pieces, edits);
    this.#written = written;
    this.#writtenGaps = gaps;
    this.#between = written.at(-1)! + written[0];
  }

  matches(text: string, start: number): boolean {
    const pieces = this.#pieces;
    const starts = this.#starts;
    let at = start;
    for (let number = 0; number < pieces.length; number++) {
      const piece = pieces[number]!;
      if (number > 0) at = text.charCodeAt(at - 1) === 34 ? insideEnd(text, at) : numberEnd(text, at);
      if (!text.startsWith(piece, at)) return false;
      starts[number] = at;
      at += piece.length;
    }
    this.end = at;
    return true;
  }

  get textStart(): number {
    return this.#starts[this.#textGap]! + this.#pieces[this.#textGap]!.length;
  }

  get textEnd(): number {
    return this.#starts[this.#textGap + 1]!;
  }

  valuesIn(text: string): string[] {
    return this.#pieces.slice(1).map((_, gap) => this.#valueIn(text, gap));
  }

  #valueIn(text: string, gap: number): string {
    return text.slice(this.#starts[gap]! + this.#pieces[gap]!.length, this.#starts[gap + 1]);
  }

  /** What is written last. */
  get lastPiece(): string {
    return this.#written.at(-1)!;
  }

  /**
   * Appends the frame without its last piece, which the next one or the end of the run brings.
   * @param before The shape of the frame before; its last piece is still missing.
   */
  appendTo(edited: string, text: string, before: Shape | undefined): string {
    let piece = before === this ? this.#between : (before?.lastPiece ?? "") + this.#written[0];
    let all = edited;
    for (let number = 0; number < this.#writtenGaps.length; number++) {
      all = `${all}${piece}${this.#valueIn(text, this.#writtenGaps[number]!)}`;
      piece = this.#written[number + 1]!;
    }
    return all;
  }
}

/** The pieces of the edited frame, and the gaps between them. */
function writtenBy(pieces: readonly string[], edits: readonly FrameEdit[]) {
  const written: string[] = [];
  const gaps: number[] = [];
  let current = "";
  let piece = 0;
  let at = 0;
  const copyTo = (endPiece: number, end: number) => {
    for (; piece < endPiece; piece++, at = 0) {
      written.push(current + pieces[piece]!.slice(at));
      gaps.push(piece);
      current = "";
    }
    current += pieces[piece]!.slice(at, end);
  };
  for (const edit of edits) {
    copyTo(edit.startPiece, edit.start);
    current += edit.text;
    piece = edit.endPiece;
    at = edit.end;
  }
  const last = pieces.length - 1;
  copyTo(last, pieces[last]!.length);
  written.push(current);
  return { written, gaps };
}

/** The position of the quote that ends a JSON string; for an invalid string, of the first invalid character. */
function insideEnd(text: string, start: number): number {
  for (let at = start; ; at = escaped.lastIndex) {
    at = plainEnd(text, at);
    if (text.charCodeAt(at) !== 92) return at;
    escaped.lastIndex = at;
    if (!escaped.test(text)) return at;
  }
}

/** The position of the next quote, backslash or control character; the end of the text if there is none. */
function plainEnd(text: string, start: number): number {
  // The expression searches ten times faster than a loop, but to begin takes as long as 20 characters.
  const near = Math.min(start + 20, text.length);
  for (let at = start; at < near; at++) {
    const code = text.charCodeAt(at);
    if (code === 34 || code === 92 || code < 32) return at;
  }
  special.lastIndex = near;
  return special.test(text) ? special.lastIndex - 1 : text.length;
}

const special = /["\\\0-\x1f]/g;
const escaped = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

function numberEnd(text: string, start: number): number {
  let at = start;
  for (let code = text.charCodeAt(at); code >= 48 && code <= 57; code = text.charCodeAt(at)) at++;
  // JSON has no numbers without digits or with leading zeros.
  return at === start || (text.charCodeAt(start) === 48 && at > start + 1) ? text.length : at;
}
