/**
 * Most events of a stream are alike: they differ in a text, and in the ids and numbers that go with its place. What the stages
 * make of such an event is learned as a replacement in its text, which the next ones get at once, many at a time. The stages add
 * up the pieces of a call: those that passed are shown to them as one piece, before they get anything else.
 */
import { isUtf8 } from "node:buffer";
import { type FrameSink, frameText, latin1, part, type SseFrame } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";
import type { ClientSink } from "../codec";
import { type FreeMembers, Learner } from "./alike-parts";
import { filled, lessons, type Made, type Replacement } from "./alike-replacement";
import type { Beat } from "./beat";

type Kind = keyof FreeMembers;

/** Stands before the reader of a stream, before its writer, and behind that. */
export class AlikeEvents implements Sink<SseFrame> {
  /** Of the kind of block that was open before the present frame. */
  #learner: Learner<Replacement, Made>;
  #learns: Kind = "text";
  #open: Kind = "text";
  /** Those of the open call that passed; missing while none did. */
  #pieces: Pieces | undefined;
  /** What the stages make of an event that is learned from, as long as they read nothing but a piece of text in it. */
  #made: SseFrame[] | undefined;
  #piece: string | undefined;
  #stages: Sink<SseFrame> | undefined;

  /** @param client Gets what the stages made, and what passed. */
  constructor(
    private readonly client: Sink<SseFrame>,
    private readonly free: FreeMembers,
  ) {
    this.#learner = new Learner(lessons.text, free.text);
  }

  /** Takes the frames that do not pass. */
  beforeReader(stages: Sink<SseFrame>): FrameSink {
    this.#stages = stages;
    return {
      push: (frame) => this.#show(frame),
      pass: (text, start, bytes) => this.#pass(text, start, bytes),
      end: () => {
        this.#catchUp();
        stages.end();
      },
    };
  }

  /** @param writer Writes to this. */
  beforeWriter(writer: ClientSink<Beat>): ClientSink<Beat> {
    return {
      type: writer.type,
      push: (beat) => {
        const [event, more] = beat.events;
        for (const each of beat.events)
          if (each.type === "block-start") this.#open = each.block.kind === "tool-call" ? "call" : "text";
        if (more || event?.type !== "block-delta") this.#made = undefined;
        else this.#piece = this.#open === "call" ? event.text : undefined;
        writer.push(beat);
      },
      end: () => writer.end(),
      keepAlive: () => {
        this.#catchUp();
        writer.keepAlive();
      },
      fail: (error) => {
        this.#catchUp();
        writer.fail(error);
      },
    };
  }

  /** Takes what the stages made. */
  push(frame: SseFrame): void {
    if (this.#learner.isMuted) return;
    this.#made?.push(frame);
    this.client.push(frame);
  }

  end(): void {
    this.client.end();
  }

  #pass(text: string, start: number, bytes: Uint8Array): number {
    if (!this.#learner.trusted) return start;
    const { pattern, by, piece } = this.#learner.trusted;
    let pieces: string[] | undefined;
    let [last, end, made] = [start, start, ""];
    for (pattern.lastIndex = start; end < text.length; end = pattern.lastIndex) {
      const found = by || piece ? pattern.exec(text) : pattern.test(text);
      if (!found) break;
      if (by && found !== true) made += filled(by, found, piece);
      if (piece && found !== true) {
        pieces ??= [];
        pieces.push(found[piece]!);
      }
      last = end;
    }
    if (end === start) return start;
    const sent = by ? bytesOf(made) : part(bytes, start, end);
    if (!sent) return start;
    this.client.push({ bytes: sent });
    if (pieces) this.#keep(pieces);
    this.#learner.unread = text.slice(last, end);
    return end;
  }

  #show(frame: SseFrame): void {
    this.#catchUp();
    if (this.#learns !== this.#open) this.#turn();
    const { bytes } = frame;
    this.#made = this.#learner.see() && bytes ? [] : undefined;
    this.#stages?.push(frame);
    const [made, more] = this.#made ?? [];
    if (bytes && made && !more) this.#learner.learn(latin1(bytes), { text: textOf(made), piece: this.#piece });
  }

  #catchUp(): void {
    if (this.#pieces) this.#join(this.#pieces);
    this.#learner.catchUp(this.#stages);
  }

  #keep(pieces: readonly string[]): void {
    this.#pieces ??= new Pieces();
    this.#pieces.add(pieces);
  }

  /** The last event that passed has all pieces. */
  #join(pieces: Pieces): void {
    const { trusted, unread } = this.#learner;
    this.#learner.unread = withPiece(unread!, trusted!, pieces.take());
    this.#pieces = undefined;
  }

  #turn(): void {
    this.#learns = this.#open;
    this.#learner = new Learner(lessons[this.#learns], this.free[this.#learns]);
  }
}

/** Texts that are parts of larger ones. A few are joined at a time, because a part keeps the whole. */
class Pieces {
  #few: string[] = [];
  #joined: string[] = [];

  add(pieces: readonly string[]): void {
    for (const piece of pieces) if (this.#few.push(piece) === 100) this.#join();
  }

  take(): string {
    this.#join();
    return this.#joined.join("");
  }

  #join(): void {
    this.#joined.push(this.#few.join(""));
    this.#few = [];
  }
}

function withPiece(event: string, { pattern, piece }: Replacement, text: string): string {
  const [start, end] = new RegExp(pattern.source, "dy").exec(event)!.indices![piece!]!;
  return event.slice(0, start) + text + event.slice(end);
}

const encoder = new TextEncoder();

/** Most texts are ASCII, for which this is quicker. Undefined if it is not UTF-8: the stages write a character in such a place. */
function bytesOf(text: string): Uint8Array | undefined {
  const ascii = encoder.encode(text);
  if (ascii.length === text.length) return ascii;
  const bytes = Buffer.from(text, "latin1");
  return isUtf8(bytes) ? bytes : undefined;
}

const textOf = (frame: SseFrame): string => latin1(frame.bytes ?? Buffer.from(frameText(frame)));
