/**
 * Who reads a stream to write it anew needs the texts of most events and nothing else. An event that is like those before is
 * not parsed: a pattern finds its text.
 *
 * A pattern is trusted once it has found what the reader found in a further event, be it of another stream, and forgotten with
 * the first event that is not alike. Before that one the reader is shown the last of those that passed, and told the length of
 * the others.
 */
import { type FrameSink, frameIn, latin1, type SseFrame } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";
import { freePattern, isLearnt, last, literally, partsOf, patternOf, Trusted } from "./alike-parts";
import type { Beat } from "./beat";

interface TextReader {
  frames: Sink<SseFrame>;
  /** Counts characters of the open text that it has not read. */
  heard(length: number): void;
}

/** The only group of a pattern is the text. */
const trusted = new Trusted<RegExp>();

export class AlikeTexts implements FrameSink {
  readonly #reader: TextReader;
  #trusted: RegExp | undefined;
  /** Not yet trusted. */
  #candidate: RegExp | undefined;
  #seen = 0;
  /** What the reader finds in an event, if it is nothing but a text. */
  #found: string | undefined;
  #isFirst = true;
  /** The pieces of a call are never alike: they are added up. */
  #isCall = false;
  #isMuted = false;
  /** Only who hands over frames before they are read gains by what is learned. */
  #isAsked = false;
  /** The last event that passed, if the reader has seen none after it, and the characters of those before. */
  #unseen: string | undefined;
  #unheard = 0;
  /** Characters of the last one. */
  #last = 0;

  /** @param free Of `freeMembers`. @param read Makes the reader. */
  constructor(
    private readonly next: Sink<Beat>,
    private readonly free: RegExp,
    read: (next: Sink<Beat>) => TextReader,
  ) {
    this.#reader = read({ push: (beat) => this.#tell(beat), end: () => next.end() });
  }

  push(frame: SseFrame): void {
    this.#catchUp();
    this.#seen++;
    this.#found = undefined;
    this.#isFirst = true;
    this.#reader.frames.push(frame);
    if (this.#isAsked && frame.bytes && this.#found !== undefined && this.#seen <= last)
      this.#learn(latin1(frame.bytes), this.#found);
  }

  end(): void {
    this.#catchUp();
    this.#reader.frames.end();
  }

  pass(text: string, start: number): number {
    this.#isAsked = true;
    const pattern = this.#trusted;
    let end = start;
    while (pattern && end < text.length) {
      pattern.lastIndex = end;
      const found = pattern.exec(text);
      if (!found) break;
      end = pattern.lastIndex;
      const said = textOf(found[1]!);
      this.#unheard += this.#last;
      this.#unseen = found[0];
      this.#last = said.length;
      this.next.push({ events: [{ type: "block-delta", text: said }] });
    }
    return end;
  }

  /** Gets what the reader found. */
  #tell(beat: Beat): void {
    if (this.#isMuted) return;
    const [event, more] = beat.events;
    for (const each of beat.events) if (each.type === "block-start") this.#isCall = each.block.kind === "tool-call";
    const isText = this.#isFirst && !this.#isCall && !more && !beat.lost && event?.type === "block-delta";
    this.#found = isText ? event.text : undefined;
    this.#isFirst = false;
    this.next.push(beat);
  }

  /** Shows the reader the last event, if it has not seen it: it is about to get anything else. */
  #catchUp(): void {
    this.#trusted = undefined;
    const event = this.#unseen;
    if (event === undefined) return;
    this.#reader.heard(this.#unheard);
    this.#unseen = undefined;
    this.#unheard = this.#last = 0;
    this.#isMuted = true;
    try {
      this.#reader.frames.push(frameIn(Buffer.from(event, "latin1")));
    } finally {
      this.#isMuted = false;
    }
  }

  #learn(event: string, said: string): void {
    for (const known of trusted.of(this.free)) if (this.#trust(known, event, said)) return;
    if (!isLearnt(event, this.#seen)) return;
    const source = sourceOf(event, said, this.free);
    if (source === undefined) return;
    const pattern = patternOf(source);
    if (this.#candidate !== pattern || !this.#trust(pattern, event, said)) this.#candidate = pattern;
  }

  /** @returns Whether it finds what the reader found. */
  #trust(pattern: RegExp, event: string, said: string): boolean {
    pattern.lastIndex = 0;
    const found = pattern.exec(event);
    if (!found || found[0] !== event || textOf(found[1]!) !== said) return false;
    this.#trusted = pattern;
    trusted.add(this.free, pattern);
    return true;
  }
}

/** The pattern of an event; undefined if not exactly one of its free values is what was said. */
function sourceOf(event: string, said: string, free: RegExp): string | undefined {
  let count = 0;
  let source = "";
  for (const [text, kind] of partsOf(event, free)) {
    const isSaid = kind === "text" && text !== "" && textOf(text) === said;
    if (isSaid) count++;
    // Where a value is empty, another one would mean more than a text.
    const hole = kind === undefined || text === "" ? literally(text) : freePattern(kind);
    source += isSaid ? `(${hole})` : hole;
  }
  return count === 1 ? source : undefined;
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** @param inside Of a JSON string: a character for each of its bytes. */
function textOf(inside: string): string {
  const text = /[^\0-\x7f]/.test(inside) ? utf8.decode(Buffer.from(inside, "latin1")) : inside;
  return text.includes("\\") ? JSON.parse(`"${text}"`) : text;
}
