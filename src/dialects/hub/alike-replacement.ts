/** What the stages make of an event, as a replacement in its text: how it is learned, and tried on a further event. */
import { freePattern, type Learned, literally, type Part, partsOf, patternOf, placeOf } from "./alike-parts";

export interface Replacement extends Learned {
  /** What comes around the groups of the pattern; undefined if an event stays as it is. */
  by: readonly string[] | undefined;
  /** The stream's own id comes in place of others: `by` has {@link idPlace} there. */
  hasId?: boolean;
  /** The group that is a piece of a call. It is none of those that `by` comes around. */
  piece?: number | undefined;
}

/** What the stages made of an event, and the piece of a call in it. */
export interface Made {
  text: string;
  piece?: string | undefined;
}

/** No JSON has it. */
const idPlace = "\0";

const lessonOf = () => ({ trusted: new WeakMap<RegExp, readonly Replacement[]>(), from: replacementIn, tried });
export const lessons = { text: lessonOf(), call: lessonOf() };

function replacementIn(event: string, { text, piece }: Made, free: RegExp): Replacement | undefined {
  const parts = partsOf(event, free);
  const place = piece === undefined ? undefined : placeOf(piece, parts);
  if (piece !== undefined && place === undefined) return undefined;
  const { source, by, ...others } = replacementOf(parts, event === text ? parts : partsOf(text, free), place);
  return { pattern: patternOf(source), by: event === text ? undefined : by, ...others };
}

function tried(replacement: Replacement, event: string, { text }: Made, free: RegExp): Replacement | undefined {
  const own = replacement.hasId ? withOwnId(replacement, event, text, free) : replacement;
  return own && gives(own, event, text) ? own : undefined;
}

/** Undefined if the stream keeps the event's id: what the stages do in place of another one was not seen yet. */
function withOwnId(
  { pattern, by, piece }: Replacement,
  event: string,
  made: string,
  free: RegExp,
): Replacement | undefined {
  const id = idIn(made, free);
  if (id === undefined || id === idIn(event, free)) return undefined;
  return { pattern, piece, by: by?.map((text) => text.replaceAll(idPlace, () => id)) };
}

function idIn(event: string, free: RegExp): string | undefined {
  free.lastIndex = 0;
  for (let found = free.exec(event); found; found = free.exec(event)) if (found.groups!.id) return found.groups!.id;
  return undefined;
}

function gives({ pattern, by, piece }: Replacement, event: string, made: string): boolean {
  pattern.lastIndex = 0;
  const found = pattern.exec(event);
  return found !== null && (by ? filled(by, found, piece) : found[0]) === made;
}

/**
 * What stays the same, from one difference to the next, is a group of the pattern; `by` is what comes around its groups.
 * @param place Of the piece of a call, which is a group too.
 */
function replacementOf(event: readonly Part[], made: readonly Part[], place: number | undefined) {
  const by = [""];
  let piece: number | undefined;
  let [source, isOpen, hasId, isOwn] = ["", false, false, false];
  for (let at = 0; at < Math.max(event.length, made.length); at++) {
    const [[text, kind], to] = [event[at] ?? [""], made[at]?.[0]];
    const isSame = kind === undefined || kind === "id" ? text === to : to !== undefined;
    if (isSame && !isOpen) by.push("");
    if (isSame !== isOpen) source += isSame ? "(" : ")";
    isOpen = isSame;
    // A value that is empty, or an id that is kept, is not free: another one would mean more than a text.
    const isFree = kind !== undefined && text !== "" && (kind !== "id" || !isSame);
    const hole = isFree ? freePattern(kind) : literally(text);
    if (at === place) piece = by.length;
    source += at === place ? `(${hole})` : hole;
    const isId = kind === "id" && text !== "";
    if (!isSame) by.push(by.pop() + (isId ? idPlace : (to ?? "")));
    hasId ||= isId && !isSame;
    isOwn ||= isId && isSame;
  }
  return { source: isOpen ? `${source})` : source, by, hasId, isOwn, piece };
}

/** Quicker than `String.replace`. @param piece The group that is left out. */
export function filled(by: readonly string[], found: RegExpExecArray, piece = by.length): string {
  let text = by[0]!;
  for (let at = 1; at < by.length; at++) text += found[at < piece ? at : at + 1]! + by[at]!;
  return text;
}
