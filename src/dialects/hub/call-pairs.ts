/**
 * Which result belongs to which call of a history. Ids alone do not say it: models that count their calls begin anew in
 * each turn (`functions.look:0`), an interrupted call has no result, and some clients send results late or twice.
 */

/** A call or a result of a history. */
export interface CallPiece<Item> {
  kind: "call" | "result";
  id: unknown;
  /** What a dialect writes for it; no two pieces have the same. */
  item: Item;
  /** The result of a call, and the call of a result. */
  partner?: CallPiece<Item>;
}

/** In its order. Undefined stands for what ends a turn of the model: what the user or the system says. */
type History<Item> = readonly (CallPiece<Item> | undefined)[];

/** Whether one result of each call comes before anything else is said, and there is no other: as in nearly all histories. */
export function isAnswered(history: History<unknown>): boolean {
  const open = new Set<unknown>();
  for (const piece of history)
    if (piece?.kind === "result") {
      if (!open.delete(piece.id)) return false;
    } else if (!piece) {
      if (open.size > 0) return false;
    } else if (open.has(piece.id)) return false;
    else open.add(piece.id);
  return open.size === 0;
}

/** The calls with one id in one turn of the model, and the results with that id up to the next such turn. */
interface Group<Item> {
  turn: number;
  calls: CallPiece<Item>[];
  results: CallPiece<Item>[];
}

/**
 * Sets the partners in a history. A result belongs to the nearest turn before it that has a call of its id. In there, the
 * results answer the last calls of the id, in their order. A result before all calls of its id, and one too many, has no
 * partner. The work grows with the length of the history.
 * @returns The pieces by their items.
 */
export function pairCalls<Item>(history: History<Item>): Map<Item, CallPiece<Item>> {
  const pieces = new Map<Item, CallPiece<Item>>();
  const latest = new Map<unknown, Group<Item>>();
  let turn = 0;
  for (const piece of history) {
    if (piece) pieces.set(piece.item, piece);
    if (piece?.kind !== "call") {
      turn++;
      if (piece) latest.get(piece.id)?.results.push(piece);
      continue;
    }
    const group = latest.get(piece.id);
    if (group?.turn === turn) group.calls.push(piece);
    else {
      if (group) settle(group);
      latest.set(piece.id, { turn, calls: [piece], results: [] });
    }
  }
  for (const group of latest.values()) settle(group);
  return pieces;
}

function settle<Item>({ calls, results }: Group<Item>): void {
  const unanswered = Math.max(0, calls.length - results.length);
  for (const [at, call] of calls.slice(unanswered).entries()) {
    const result = results[at];
    if (!result) return;
    call.partner = result;
    result.partner = call;
  }
}

/** The longest id, of a call or an item, that OpenAI and Anthropic accept. */
export const longestId = 64;

/** Signs of a number and of what stands before it. */
const numberLength = 8;

/** Gives out ids, each once: an id that was given out before gets a number. The work for one does not grow with their count. */
export class OwnIds {
  readonly #taken = new Set<string>();
  /** How many ids were given out by the beginning of the wanted ones: of those that begin alike the numbers go on. */
  readonly #counts = new Map<string, number>();

  /** @param longest Characters that an id may have. */
  constructor(private readonly longest = longestId) {}

  has(id: string): boolean {
    return this.#taken.has(id);
  }

  give(id: string): string {
    const free = this.#taken.has(id) ? this.#numbered(id) : id;
    this.#taken.add(free);
    return free;
  }

  #numbered(id: string): string {
    const stem = id.slice(0, this.longest - numberLength);
    for (let count = (this.#counts.get(stem) ?? 1) + 1; ; count++) {
      this.#counts.set(stem, count);
      const end = `_${count}`;
      const candidate = id.slice(0, this.longest - end.length) + end;
      if (!this.#taken.has(candidate)) return candidate;
    }
  }
}

/**
 * New ids for the items of a history, so that no two calls have the same: each call of an id after the first one gets an id
 * of its own, and so does its result. A result without a call gets one as well, where several calls have its id or one was
 * given it here. Empty if no two calls have one id.
 * @param longest Characters that the upstream takes in an id. @param isOwn Whether a call needs an id that no other has.
 */
export function ownCallIds<Item>(
  history: History<Item>,
  longest = longestId,
  isOwn: (item: Item) => boolean = () => true,
): Map<Item, string> {
  const ids = new OwnIds(longest);
  const own = new Map<Item, string>();
  const calls = history.filter((piece) => piece?.kind === "call" && typeof piece.id === "string" && isOwn(piece.item));
  if (new Set(calls.map((call) => call?.id)).size === calls.length) return own;
  pairCalls(history);
  /** Ids that several calls have, and those that were made for them. */
  const repeated = new Set<string>();
  const give = ({ item }: CallPiece<Item>, id: string) => {
    const free = ids.give(id);
    if (free !== id) own.set(item, free);
    return free;
  };
  for (const piece of calls) {
    if (typeof piece?.id !== "string") continue;
    if (ids.has(piece.id)) repeated.add(piece.id);
    const free = give(piece, piece.id);
    if (free === piece.id) continue;
    repeated.add(free);
    if (piece.partner) own.set(piece.partner.item, free);
  }
  for (const piece of history)
    if (piece?.kind === "result" && !piece.partner && typeof piece.id === "string" && repeated.has(piece.id))
      give(piece, piece.id);
  return own;
}

/** Before what a tool said whose call is not in the conversation, for example in a shortened history: it is sent as text. */
export const lostResultHeading = (id: unknown): string => `Result of the earlier tool call ${id}:`;
