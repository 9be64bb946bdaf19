/**
 * Most events of a stream are alike: they differ in a text, and in the ids and numbers that go with its place. What the stages
 * make of such an event is learned as a replacement in its text, which the next ones get at once, many at a time.
 */
import { isUtf8 } from "node:buffer";
import { type FrameSink, frameText, latin1, part, type SseFrame } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";
import type { ClientSink } from "../codec";
import {
  freePattern,
  type Learned,
  Learner,
  literally,
  type Part,
  partsOf,
  patternOf,
  type Trusted,
} from "./alike-parts";
import type { Beat } from "./beat";

interface Replacement extends Learned {
  /** What comes around the groups of the pattern; undefined if an event stays as it is. */
  by: readonly string[] | undefined;
  /** The stream's own id comes in place of others: `by` has {@link idPlace} there. */
  hasId?: boolean;
}

/** No JSON has it. */
const idPlace = "\0";

const trusted: Trusted<Replacement> = new WeakMap();

/** Stands before the reader of a stream, before its writer, and behind that. */
export class AlikeEvents implements Sink<SseFrame> {
  readonly #learner: Learner<Replacement, string>;
  /** What the stages make of an event that is learned from, as long as they read nothing but a piece of text in it. */
  #made: SseFrame[] | undefined;
  /** The pieces of a call are never alike. */
  #isCall = false;
  #stages: Sink<SseFrame> | undefined;

  /** @param client Gets what the stages made, and what passed. @param free Of {@link freeMembers}. */
  constructor(
    private readonly client: Sink<SseFrame>,
    free: RegExp,
  ) {
    this.#learner = new Learner({ trusted, from: replacementIn, tried }, free);
  }

  /** Takes the frames that do not pass. */
  beforeReader(stages: Sink<SseFrame>): FrameSink {
    this.#stages = stages;
    return {
      push: (frame) => this.#show(frame),
      pass: (text, start, bytes) => this.#pass(text, start, bytes),
      end: () => {
        this.#learner.catchUp(this.#stages);
        stages.end();
      },
    };
  }

  /** @param writer Writes to this. */
  beforeWriter(writer: ClientSink<Beat>): ClientSink<Beat> {
    return {
      type: writer.type,
      push: (beat) => {
        for (const event of beat.events)
          if (event.type === "block-start") this.#isCall = event.block.kind === "tool-call";
        if (this.#isCall || beat.events.length !== 1 || beat.events[0]?.type !== "block-delta") this.#made = undefined;
        writer.push(beat);
      },
      end: () => writer.end(),
      keepAlive: () => {
        this.#learner.catchUp(this.#stages);
        writer.keepAlive();
      },
      fail: (error) => {
        this.#learner.catchUp(this.#stages);
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
    const { pattern, by } = this.#learner.trusted;
    let [last, end, made] = [start, start, ""];
    for (pattern.lastIndex = start; end < text.length; end = pattern.lastIndex) {
      const found = by ? pattern.exec(text) : pattern.test(text);
      if (!found) break;
      if (by && found !== true) made += filled(by, found);
      last = end;
    }
    if (end === start) return start;
    const sent = by ? bytesOf(made) : part(bytes, start, end);
    if (!sent) return start;
    this.client.push({ bytes: sent });
    this.#learner.unread = text.slice(last, end);
    return end;
  }

  #show(frame: SseFrame): void {
    this.#learner.catchUp(this.#stages);
    const { bytes } = frame;
    this.#made = this.#learner.see() && bytes ? [] : undefined;
    this.#stages?.push(frame);
    const [made, more] = this.#made ?? [];
    if (bytes && made && !more) this.#learner.learn(latin1(bytes), textOf(made));
  }
}

function replacementIn(event: string, made: string, free: RegExp): Replacement {
  const parts = partsOf(event, free);
  const { source, by, ...ids } = replacementOf(parts, event === made ? parts : partsOf(made, free));
  return { pattern: patternOf(source), by: event === made ? undefined : by, ...ids };
}

function tried(replacement: Replacement, event: string, made: string, free: RegExp): Replacement | undefined {
  const own = replacement.hasId ? withOwnId(replacement, event, made, free) : replacement;
  return own && gives(own, event, made) ? own : undefined;
}

/** Undefined if the stream keeps the event's id: what the stages do in place of another one was not seen yet. */
function withOwnId({ pattern, by }: Replacement, event: string, made: string, free: RegExp): Replacement | undefined {
  const id = idIn(made, free);
  if (id === undefined || id === idIn(event, free)) return undefined;
  return { pattern, by: by?.map((text) => text.replaceAll(idPlace, () => id)) };
}

function idIn(event: string, free: RegExp): string | undefined {
  free.lastIndex = 0;
  for (let found = free.exec(event); found; found = free.exec(event)) if (found.groups!.id) return found.groups!.id;
  return undefined;
}

function gives({ pattern, by }: Replacement, event: string, made: string): boolean {
  pattern.lastIndex = 0;
  const found = pattern.exec(event);
  return found !== null && (by ? filled(by, found) : found[0]) === made;
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

/** What stays the same, from one difference to the next, is a group of the pattern; `by` is what comes around its groups. */
function replacementOf(event: readonly Part[], made: readonly Part[]) {
  const by = [""];
  let [source, isOpen, hasId, isOwn] = ["", false, false, false];
  for (let at = 0; at < Math.max(event.length, made.length); at++) {
    const [[text, kind], to] = [event[at] ?? [""], made[at]?.[0]];
    const isSame = kind === undefined || kind === "id" ? text === to : to !== undefined;
    if (isSame && !isOpen) by.push("");
    if (isSame !== isOpen) source += isSame ? "(" : ")";
    isOpen = isSame;
    // A value that is empty, or an id that is kept, is not free: another one would mean more than a text.
    const isFree = kind !== undefined && text !== "" && (kind !== "id" || !isSame);
    source += isFree ? freePattern(kind) : literally(text);
    const isId = kind === "id" && text !== "";
    if (!isSame) by.push(by.pop() + (isId ? idPlace : (to ?? "")));
    hasId ||= isId && !isSame;
    isOwn ||= isId && isSame;
  }
  return { source: isOpen ? `${source})` : source, by, hasId, isOwn };
}

/** Quicker than `String.replace`. */
function filled(by: readonly string[], found: RegExpExecArray): string {
  let text = by[0]!;
  for (let at = 1; at < by.length; at++) text += found[at]! + by[at]!;
  return text;
}
