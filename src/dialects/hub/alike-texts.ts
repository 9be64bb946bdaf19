/**
 * Who reads a stream to write it anew needs the texts of most events and nothing else. An event that is like those before is
 * not parsed: a learned pattern finds its text. The reader is told the length of those that it was not shown.
 */
import { type FrameSink, latin1, type SseFrame } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";
import {
  freePattern,
  type Learned,
  Learner,
  literally,
  partsOf,
  patternOf,
  placeOf,
  type Trusted,
  unescaped,
} from "./alike-parts";
import type { Beat } from "./beat";

interface TextReader {
  frames: Sink<SseFrame>;
  /** Counts characters of the open text that it has not read. */
  heard(length: number): void;
}

const trusted: Trusted<Learned> = new WeakMap();

export class AlikeTexts implements FrameSink {
  readonly #reader: TextReader;
  readonly #learner: Learner<Learned, string>;
  /** What the reader finds in an event, if it is nothing but a text. */
  #found: string | undefined;
  #isFirst = true;
  /** Who writes the stream anew reads each piece of a call. */
  #isCall = false;
  /** Only who hands over frames before they are read gains by what is learned. */
  #isAsked = false;
  /** Characters of the last event that passed, and of those before. */
  #last = 0;
  #unheard = 0;

  /** @param free Of `freeMembers`. @param read Makes the reader. */
  constructor(
    private readonly next: Sink<Beat>,
    free: RegExp,
    read: (next: Sink<Beat>) => TextReader,
  ) {
    this.#learner = new Learner({ trusted, from: patternIn, tried: found }, free);
    this.#reader = read({ push: (beat) => this.#tell(beat), end: () => next.end() });
  }

  push(frame: SseFrame): void {
    this.#catchUp();
    const lesson = this.#learner.see() && this.#isAsked && frame.bytes;
    this.#found = undefined;
    this.#isFirst = true;
    this.#reader.frames.push(frame);
    if (lesson && this.#found !== undefined) this.#learner.learn(latin1(lesson), this.#found);
  }

  end(): void {
    this.#catchUp();
    this.#reader.frames.end();
  }

  pass(text: string, start: number): number {
    this.#isAsked = true;
    const pattern = this.#learner.trusted?.pattern;
    let end = start;
    while (pattern && end < text.length) {
      pattern.lastIndex = end;
      const found = pattern.exec(text);
      if (!found) break;
      end = pattern.lastIndex;
      const said = unescaped(found[1]!);
      this.#unheard += this.#last;
      this.#learner.unread = found[0];
      this.#last = said.length;
      this.next.push({ events: [{ type: "block-delta", text: said }] });
    }
    return end;
  }

  /** Gets what the reader found. */
  #tell(beat: Beat): void {
    if (this.#learner.isMuted) return;
    const [event, more] = beat.events;
    for (const each of beat.events) if (each.type === "block-start") this.#isCall = each.block.kind === "tool-call";
    const isText = this.#isFirst && !this.#isCall && !more && !beat.lost && event?.type === "block-delta";
    this.#found = isText ? event.text : undefined;
    this.#isFirst = false;
    this.next.push(beat);
  }

  #catchUp(): void {
    if (this.#learner.unread !== undefined) this.#reader.heard(this.#unheard);
    this.#unheard = this.#last = 0;
    this.#learner.catchUp(this.#reader.frames);
  }
}

/** The pattern of an event, whose only group is the text; undefined if not exactly one of its free values is what was said. */
function patternIn(event: string, said: string, free: RegExp): Learned | undefined {
  const parts = partsOf(event, free);
  const place = placeOf(said, parts);
  if (place === undefined) return undefined;
  let source = "";
  for (const [at, [text, kind]] of parts.entries()) {
    // Where a value is empty, another one would mean more than a text.
    const hole = kind === undefined || text === "" ? literally(text) : freePattern(kind);
    source += at === place ? `(${hole})` : hole;
  }
  return { pattern: patternOf(source) };
}

function found(learned: Learned, event: string, said: string): Learned | undefined {
  learned.pattern.lastIndex = 0;
  const [whole, text] = learned.pattern.exec(event) ?? [];
  return whole === event && unescaped(text!) === said ? learned : undefined;
}
