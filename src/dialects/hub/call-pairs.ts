/**
 * Which result belongs to which call of a history. Ids alone do not say it: models that count their calls begin anew in
 * each turn (`functions.look:0`), an interrupted call has no result, and some clients send results late or twice.
 */

/** A call or a result of a history. */
export interface CallPiece<Item> {
  kind: "call" | "result";
  id: unknown;
  item: Item;
  /** The result of a call, and the call of a result. */
  partner?: CallPiece<Item>;
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
 * @param history In its order. Undefined stands for what ends a turn of the model: what the user or the system says.
 */
export function pairCalls<Item>(history: Iterable<CallPiece<Item> | undefined>): void {
  const latest = new Map<unknown, Group<Item>>();
  let turn = 0;
  for (const piece of history) {
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

/**
 * New ids for the pieces of a history with partners, so that no two calls have the same: each call of an id after the first one
 * gets an id of its own, and so does its result. A result without a call gets one as well, where several calls have its id or
 * one was given it here.
 */
export function ownCallIds<Item>(history: readonly (CallPiece<Item> | undefined)[]): Map<CallPiece<Item>, string> {
  const taken = new Set<unknown>();
  const counts = new Map<string, number>();
  /** Ids that several calls have, and those that were made for them. */
  const repeated = new Set<unknown>();
  const own = new Map<CallPiece<Item>, string>();
  const give = (piece: CallPiece<Item>, id: string) => {
    const free = freeId(id, taken, counts);
    taken.add(free);
    if (free !== id) own.set(piece, free);
    return free;
  };
  for (const piece of history) {
    if (piece?.kind !== "call" || typeof piece.id !== "string") continue;
    if (taken.has(piece.id)) repeated.add(piece.id);
    const free = give(piece, piece.id);
    if (free === piece.id) continue;
    repeated.add(free);
    if (piece.partner) own.set(piece.partner, free);
  }
  for (const piece of history)
    if (piece?.kind === "result" && !piece.partner && typeof piece.id === "string" && repeated.has(piece.id))
      give(piece, piece.id);
  return own;
}

/** Of ids that begin alike the numbers go on, so that each is found at once. */
const stemLength = longestId - 8;

/** @param counts How many ids were given out by the beginning of the wanted ones. */
function freeId(id: string, taken: ReadonlySet<unknown>, counts: Map<string, number>): string {
  if (!taken.has(id)) return id;
  const stem = id.slice(0, stemLength);
  for (let count = (counts.get(stem) ?? 1) + 1; ; count++) {
    counts.set(stem, count);
    const end = `_${count}`;
    const candidate = id.slice(0, longestId - end.length) + end;
    if (!taken.has(candidate)) return candidate;
  }
}

/** Before what a tool said whose call is not in the conversation, for example in a shortened history: it is sent as text. */
export const lostResultHeading = (id: unknown): string => `Result of the earlier tool call ${id}:`;
