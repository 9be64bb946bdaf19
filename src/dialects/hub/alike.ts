/**
 * Most events of a stream are alike: they differ in a text, and in the ids and numbers that go with its place. What the stages
 * make of such an event is learned as a replacement in its text, which the next ones get at once, many at a time.
 *
 * A replacement is trusted once it has given what the stages made of a further event, be it of another stream, and forgotten
 * with the first event that is not alike. Before that one the stages see the last of those that passed: of earlier ones they
 * would remember nothing.
 */
import { BoundedMap } from "../../lib/bounded-map";
import { frameIn, frameText, latin1, part, type SseFrame, type UnreadFrames } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";
import type { ClientSink } from "../codec";
import type { Beat } from "./beat";

type Kind = keyof typeof free;
const free = { text: '"(?<text>§)"', number: "(?<number>\\d+)", id: '"(?<id>§)"' };

/**
 * Finds the free values of an event by the names of their members, at whatever depth: strings and whole numbers that the client
 * gets as they are, and ids, in whose place it may get the same one each time.
 */
export function freeMembers(members: Partial<Record<Kind, readonly string[]>>): RegExp {
  const kinds = Object.entries(members).map(([kind, names]) => `"(?:${names.join("|")})": ?${free[kind as "text"]}`);
  return new RegExp(kinds.join("|").replaceAll("§", String.raw`[^"\\]*(?:\\.[^"\\]*)*`), "g");
}

/** The inside of a JSON string that is not empty: one character for each byte, so that UTF-8 passes. */
const anyText = String.raw`(?!")[^"\\\0-\x1f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\0-\x1f]*)*`;
const anyNumber = String.raw`(?:0|[1-9]\d{0,14})`;

/** Events with holes for what is free in them, one after the other; by their source. */
const patterns = new BoundedMap<string, RegExp>(50);

/** What takes the place of the events that fit the pattern. */
interface Replacement {
  pattern: RegExp;
  /** What comes around the groups of the pattern; undefined if an event stays as it is. */
  by: readonly string[] | undefined;
  /** The stream's own id comes in place of others: `by` has {@link idPlace} there. */
  hasId?: boolean;
  /** It has an id of one stream, and fits no other. */
  isOwn?: boolean;
}

/** No JSON has it. */
const idPlace = "\0";

/** Of each dialect those that were trusted last, by its free members. A stream needs none of its own that fits one of them. */
const trusted = new WeakMap<RegExp, Replacement[]>();
const mostTrusted = 8;

/** After so many events of a stream learning begins, and after so many it ends; a longer event is not learned from. */
const [first, last, longest] = [3, 40, 8192];

/** Stands before the reader of a stream, before its writer, and behind that. */
export class AlikeEvents implements Sink<SseFrame>, UnreadFrames {
  #trusted: Replacement | undefined;
  /** Not yet trusted. */
  #candidate: Replacement | undefined;
  #seen = 0;
  /** What the stages make of an event that is learned from, as long as they read nothing but a piece of text in it. */
  #made: SseFrame[] | undefined;
  /** The pieces of a call are never alike. */
  #isCall = false;
  #isMuted = false;
  /** The last event that passed, if the stages have seen none after it. */
  #unseen: string | undefined;
  #stages: Sink<SseFrame> | undefined;

  /** @param client Gets what the stages made, and what passed. @param free Of {@link freeMembers}. */
  constructor(
    private readonly client: Sink<SseFrame>,
    private readonly free: RegExp,
  ) {}

  /** Takes the frames that do not pass. */
  beforeReader(stages: Sink<SseFrame>): Sink<SseFrame> {
    this.#stages = stages;
    return {
      push: (frame) => this.#show(frame),
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
        for (const event of beat.events)
          if (event.type === "block-start") this.#isCall = event.block.kind === "tool-call";
        if (this.#isCall || beat.events.length !== 1 || beat.events[0]?.type !== "block-delta") this.#made = undefined;
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
    if (this.#isMuted) return;
    this.#made?.push(frame);
    this.client.push(frame);
  }

  end(): void {
    this.client.end();
  }

  pass(text: string, start: number, bytes: Uint8Array): number {
    if (!this.#trusted) return start;
    const { pattern, by } = this.#trusted;
    let [last, end, made] = [start, start, ""];
    for (pattern.lastIndex = start; end < text.length; end = pattern.lastIndex) {
      const found = by ? pattern.exec(text) : pattern.test(text);
      if (!found) break;
      if (by && found !== true) made += filled(by, found);
      last = end;
    }
    if (end === start) return start;
    this.client.push({ bytes: by ? bytesOf(made) : part(bytes, start, end) });
    this.#unseen = text.slice(last, end);
    return end;
  }

  /** Shows the stages the last event, if they have not seen it: they are about to get anything else. */
  #catchUp(): void {
    this.#trusted = undefined;
    const event = this.#unseen;
    if (event === undefined) return;
    [this.#unseen, this.#seen] = [undefined, first];
    this.#isMuted = true;
    try {
      this.#stages?.push(frameIn(bytesOf(event)));
    } finally {
      this.#isMuted = false;
    }
  }

  #show(frame: SseFrame): void {
    this.#catchUp();
    this.#seen++;
    const { bytes } = frame;
    this.#made = bytes && this.#seen <= last ? [] : undefined;
    this.#stages?.push(frame);
    const [made, more] = this.#made ?? [];
    if (bytes && made && !more) this.#learn(latin1(bytes), textOf(made));
  }

  #learn(event: string, made: string): void {
    for (const known of trusted.get(this.free) ?? []) if (this.#trust(known, event, made)) return;
    if (this.#seen <= first || event.length > longest || event.includes("\r")) return;
    const parts = partsOf(event, this.free);
    const { source, by, ...ids } = replacementOf(parts, event === made ? parts : partsOf(made, this.free));
    const pattern = patterns.renewed(source, () => new RegExp(source, "gy"));
    const candidate = this.#candidate;
    if (candidate?.pattern === pattern && this.#trust(candidate, event, made)) return;
    this.#candidate = { pattern, by: event === made ? undefined : by, ...ids };
  }

  /** @returns Whether it gives what the stages made. */
  #trust(replacement: Replacement, event: string, made: string): boolean {
    const own = replacement.hasId ? withOwnId(replacement, event, made, this.free) : replacement;
    if (!own || !gives(own, event, made)) return false;
    this.#trusted = own;
    if (replacement.isOwn) return true;
    const others = (trusted.get(this.free) ?? []).filter((each) => each !== replacement);
    trusted.set(this.free, [replacement, ...others].slice(0, mostTrusted));
    return true;
  }
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

/** Most texts are ASCII, for which this is quicker. */
function bytesOf(text: string): Uint8Array {
  const bytes = encoder.encode(text);
  return bytes.length === text.length ? bytes : Buffer.from(text, "latin1");
}
const textOf = (frame: SseFrame): string => latin1(frame.bytes ?? Buffer.from(frameText(frame)));

/** A literal of an event, or a free value, which has a kind. They take turns, and a literal is the first and the last. */
type Part = [text: string, kind?: Kind];

function partsOf(event: string, free: RegExp): Part[] {
  const parts: Part[] = [];
  let from = 0;
  free.lastIndex = 0;
  for (let found = free.exec(event); found; found = free.exec(event)) {
    const { text, number, id } = found.groups as Partial<Record<Kind, string>>;
    const value = text ?? number ?? id!;
    // A string's quote comes after it.
    const end = free.lastIndex - (number === undefined ? 1 : 0);
    const kind = text !== undefined ? "text" : number !== undefined ? "number" : "id";
    parts.push([event.slice(from, end - value.length)], [value, kind]);
    from = end;
  }
  parts.push([event.slice(from)]);
  return parts;
}

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
    source += isFree ? (kind === "number" ? anyNumber : anyText) : literally(text);
    const isId = kind === "id" && text !== "";
    if (!isSame) by.push(by.pop() + (isId ? idPlace : (to ?? "")));
    hasId ||= isId && !isSame;
    isOwn ||= isId && isSame;
  }
  return { source: isOpen ? `${source})` : source, by, hasId, isOwn };
}

const special = /[\\^$.*+?()[\]{}|/]/g;
const literally = (text: string): string => text.replaceAll(special, "\\$&").replaceAll("\n", "\\n");

/** Quicker than `String.replace`. */
function filled(by: readonly string[], found: RegExpExecArray): string {
  let text = by[0]!;
  for (let at = 1; at < by.length; at++) text += found[at]! + by[at]!;
  return text;
}
