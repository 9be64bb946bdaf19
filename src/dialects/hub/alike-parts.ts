/** What the events of a text have in common, and what is free in them: patterns by which they are known before they are read. */
import { BoundedMap } from "../../lib/bounded-map";
import { frameIn, type SseFrame } from "../../lib/net/stream/sse";
import type { Sink } from "../../lib/net/stream/stream";

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

/** What is free in a stream's events of text, and in its pieces of calls. */
export type FreeMembers = Readonly<Record<"text" | "call", RegExp>>;

/** The inside of a JSON string that is not empty: one character for each byte, so that UTF-8 passes. */
const anyText = String.raw`(?!")[^"\\\0-\x1f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\0-\x1f]*)*`;
const anyNumber = String.raw`(?:0|[1-9]\d{0,14})`;

/** What takes the place of a free value in a pattern. */
export const freePattern = (kind: Kind): string => (kind === "number" ? anyNumber : anyText);

/** Events with holes for what is free in them, one after the other; by their source. */
const patterns = new BoundedMap<string, RegExp>(50);

export const patternOf = (source: string): RegExp => patterns.renewed(source, () => new RegExp(source, "gy"));

/** What takes the place of reading an event. */
export interface Learned {
  /** Of the events that it fits. */
  pattern: RegExp;
  /** It has an id of one stream, and fits no other. */
  isOwn?: boolean;
}

/** After so many events of a stream learning begins, and after so many it ends. */
const [first, last] = [3, 40];
/** A longer event is not learned from. */
const longest = 8192;
const mostTrusted = 8;

/** Of each dialect what was trusted last, by its free members. A stream need not learn what it finds here. */
export type Trusted<L extends Learned> = WeakMap<RegExp, readonly L[]>;

/** How something is learned from an event and from what its reading gave. */
interface Lesson<L extends Learned, Read> {
  trusted: Trusted<L>;
  /** Undefined if nothing is to be learned. */
  from(event: string, read: Read, free: RegExp): L | undefined;
  /** What this stream needs of it; undefined if that does not give what reading the event gave. */
  tried(learned: L, event: string, read: Read, free: RegExp): L | undefined;
}

/**
 * What one stream learns. It is trusted once it has given what the reading of a further event gave, be it of another stream, and
 * forgotten with the first event that is not alike. Before that one the last event that passed is read, as of earlier ones the
 * reader would remember nothing.
 */
export class Learner<L extends Learned, Read> {
  trusted: L | undefined;
  /** The last event that passed, if none was read after it. */
  unread: string | undefined;
  /** While an event that passed is read. */
  isMuted = false;
  /** Not yet trusted. */
  #candidate: L | undefined;
  #seen = 0;

  /** @param free Of {@link freeMembers}. */
  constructor(
    private readonly lesson: Lesson<L, Read>,
    private readonly free: RegExp,
  ) {}

  /** An event comes that does not pass. @returns Whether it can be learned from. */
  see(): boolean {
    return ++this.#seen <= last;
  }

  /** @param reader Is shown the last event that passed, if it has not read it: it is about to get anything else. */
  catchUp(reader: Sink<SseFrame> | undefined): void {
    this.trusted = undefined;
    const event = this.unread;
    if (event === undefined) return;
    [this.unread, this.#seen] = [undefined, first];
    this.isMuted = true;
    try {
      reader?.push(frameIn(Buffer.from(event, "latin1")));
    } finally {
      this.isMuted = false;
    }
  }

  learn(event: string, read: Read): void {
    const { lesson, free } = this;
    for (const known of lesson.trusted.get(free) ?? []) if (this.#trust(known, event, read)) return;
    if (this.#seen <= first || event.length > longest || event.includes("\r")) return;
    const learned = lesson.from(event, read, free);
    const candidate = this.#candidate;
    if (candidate && candidate.pattern === learned?.pattern && this.#trust(candidate, event, read)) return;
    this.#candidate = learned ?? candidate;
  }

  #trust(learned: L, event: string, read: Read): boolean {
    const { lesson, free } = this;
    this.trusted = lesson.tried(learned, event, read, free);
    if (!this.trusted) return false;
    if (!learned.isOwn) {
      const others = (lesson.trusted.get(free) ?? []).filter((each) => each !== learned);
      lesson.trusted.set(free, [learned, ...others].slice(0, mostTrusted));
    }
    return true;
  }
}

/** A literal of an event, or a free value, which has a kind. They take turns, and a literal is the first and the last. */
export type Part = [text: string, kind?: Kind];

export function partsOf(event: string, free: RegExp): Part[] {
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

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** @param inside Of a JSON string: a character for each of its bytes. */
export function unescaped(inside: string): string {
  const text = /[^\0-\x7f]/.test(inside) ? utf8.decode(Buffer.from(inside, "latin1")) : inside;
  return text.includes("\\") ? JSON.parse(`"${text}"`) : text;
}

/** The place of the only free text that is what was said; undefined if there is none, or another one like it. */
export function placeOf(said: string, parts: readonly Part[]): number | undefined {
  const isSaid = ([text, kind]: Part) => kind === "text" && text !== "" && unescaped(text) === said;
  const at = parts.findIndex(isSaid);
  return at === -1 || parts.findLastIndex(isSaid) !== at ? undefined : at;
}

const special = /[\\^$.*+?()[\]{}|/]/g;
export const literally = (text: string): string => text.replaceAll(special, "\\$&").replaceAll("\n", "\\n");
