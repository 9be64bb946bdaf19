/** What the events of a text have in common, and what is free in them: patterns by which they are known before they are read. */
import { BoundedMap } from "../../lib/bounded-map";

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

/** What takes the place of a free value in a pattern. */
export const freePattern = (kind: Kind): string => (kind === "number" ? anyNumber : anyText);

/** Events with holes for what is free in them, one after the other; by their source. */
const patterns = new BoundedMap<string, RegExp>(50);

export const patternOf = (source: string): RegExp => patterns.renewed(source, () => new RegExp(source, "gy"));

/** Of each dialect what was trusted last, by its free members. A stream need not learn what it finds here. */
export class Trusted<Learned> {
  readonly #trusted = new WeakMap<RegExp, readonly Learned[]>();

  of(free: RegExp): readonly Learned[] {
    return this.#trusted.get(free) ?? [];
  }

  add(free: RegExp, learned: Learned): void {
    const others = this.of(free).filter((each) => each !== learned);
    this.#trusted.set(free, [learned, ...others].slice(0, mostTrusted));
  }
}

const mostTrusted = 8;

/** After so many events of a stream learning begins, and after so many it ends. */
export const [first, last] = [3, 40];
/** A longer event is not learned from. */
const longest = 8192;

/** @param seen How many events the stream has had. */
export const isLearnt = (event: string, seen: number): boolean =>
  seen > first && event.length <= longest && !event.includes("\r");

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

const special = /[\\^$.*+?()[\]{}|/]/g;
export const literally = (text: string): string => text.replaceAll(special, "\\$&").replaceAll("\n", "\\n");
