/** Tool calls, which are streamed in pieces whose indexes are not reliable. */

import { isObject, numberIn } from "../../lib/json";
import { OwnIds } from "../hub/call-pairs";
import type { JsonObject } from "../hub/conversation";
import { shortId } from "../hub/ids";
import { textIn } from "../hub/json";
import { mapped } from "../hub/lists";
import type { Notes } from "../hub/notes";
import { isJson, ObjectEnd } from "./object-end";

/** Maximum number of calls in a reply, and maximum index: protects the memory against a faulty upstream. */
const callLimit = 1024;

/** The longest id that OpenAI accepts in chat, shorter than in the responses dialect. */
export const longestWireId = 40;
export const wireId = (id: string): string => shortId(id, longestWireId);

/** The fields of a piece of a call; `index` is the upstream's, if it sends one. */
export function callPieceIn(piece: JsonObject): { id: string; name: string; input: string; index: unknown } {
  const call = isObject(piece.function) ? piece.function : isObject(piece.custom) ? piece.custom : {};
  const input = call.arguments ?? call.input;
  return {
    id: typeof piece.id === "string" ? piece.id : "",
    name: typeof call.name === "string" ? call.name : "",
    // Some upstreams send the input as an object.
    input: typeof input === "string" ? input : input == null ? "" : JSON.stringify(input),
    index: numberIn(piece.index) ?? piece.index ?? undefined,
  };
}

/** Gemini may omit a call's id; clients refer to a call by its id, so it gets one. */
export function inventedCallId(replyId: unknown, number: number): string {
  return `call_${(typeof replyId === "string" && replyId !== "" ? replyId : crypto.randomUUID()).replaceAll(/[^\w-]/g, "").slice(-30)}_${number}`;
}

/**
 * A delta with the call of its older form, `function_call`, among its calls; the same object if it has none. Older servers
 * of this API answer so. That call has no id, so it gets one.
 */
export function withCalls(delta: JsonObject, replyId: string): JsonObject {
  const { function_call: call, tool_calls } = delta;
  if (!isObject(call) || (Array.isArray(tool_calls) && tool_calls.length > 0)) return delta;
  const { name, input } = callPieceIn({ function: call });
  if (name === "" && input === "") return delta;
  const index = "function_call";
  return { ...delta, tool_calls: [{ index, id: inventedCallId(replyId, 0), function: call }] };
}

interface Call {
  number: number;
  /** The upstream's index and id. */
  index: number;
  id: string;
  /** The id that the client gets. */
  ownId: string;
  name: string;
  input: string;
  inputEnd: ObjectEnd;
}

/** An id that no other call of the reply has. @param id The upstream's; empty if it gives none. @param number The call's place. */
const ownCallId = (ids: OwnIds, id: string, replyId: unknown, number: number): string =>
  ids.give(id === "" ? inventedCallId(replyId, number) : id);

/** The calls of a full reply with ids of their own: the same array if they have them. */
export function withOwnIds(calls: unknown[], replyId: unknown): unknown[] {
  const ids = new OwnIds(longestWireId);
  return mapped(calls, (call, number) => {
    const id = isObject(call) ? ownCallId(ids, textIn(call.id), replyId, number) : undefined;
    return !isObject(call) || call.id === id ? call : { ...call, id };
  });
}

/** Numbers the calls of a reply 0, 1, 2 … where the upstream gives all of them 0, and gives them ids of their own. */
export class CallNumbers {
  readonly #calls: Call[] = [];
  /** The latest call of each upstream index. */
  readonly #latest = new Map<number, Call>();
  readonly #ids = new OwnIds(longestWireId);

  constructor(private readonly notes: Notes) {}

  /** Whether each call's input is complete. */
  get areComplete(): boolean {
    return this.#calls.every(({ input }) => input === "" || isJson(input));
  }

  /** The fixed pieces of a delta; undefined if they are invalid. */
  fix(pieces: unknown[], replyId: string): unknown[] | undefined {
    const fixed = pieces.map((piece) => (isObject(piece) ? this.fixPiece(piece, replyId) : undefined));
    if (fixed.includes(undefined)) return undefined;
    return fixed.some((piece, at) => piece !== pieces[at]) ? fixed : pieces;
  }

  private fixPiece(piece: JsonObject, replyId: string): JsonObject | undefined {
    const newest = this.#calls.at(-1);
    const { id, name, input, index = newest?.index ?? 0 } = callPieceIn(piece);
    if (typeof index !== "number" || !Number.isInteger(index) || index < 0 || index >= callLimit) return undefined;
    const latest = this.#latest.get(index);
    // Input for a call that never began.
    if (id === "" && name === "" && !latest) return input === "" ? piece : undefined;
    const known = [latest, newest].find((call) => call && continues(call, index, id, name));
    // A name without an id begins another call once the input of this one is complete, and so does the id at another index.
    const isOther = known && (id === known.id ? index !== known.index : known !== newest);
    const isNew = !known || (isOther && name !== "" && known.inputEnd.isReached(known.input));
    const call = isNew ? this.begin(index) : known;
    if (!call) return undefined;
    let fixed = piece;
    if (isNew) call.ownId = ownCallId(this.#ids, id, replyId, call.number);
    if (id === "" ? isNew : id !== call.ownId) {
      this.notes.addFixup("tool-id");
      fixed = { ...fixed, id: call.ownId };
    }
    call.id ||= id;
    call.name ||= name;
    call.input += input;
    call.inputEnd.add(input);
    if (piece.index === call.number) return fixed;
    this.notes.addFixup("tool-index");
    return { ...fixed, index: call.number };
  }

  private begin(index: number): Call | undefined {
    if (this.#calls.length === callLimit) return undefined;
    const call: Call = {
      number: this.#calls.length,
      index,
      id: "",
      ownId: "",
      name: "",
      input: "",
      inputEnd: new ObjectEnd(),
    };
    this.#calls.push(call);
    this.#latest.set(index, call);
    return call;
  }
}

/** Claude gives all parallel calls the index 0: only a new id, or without ids a name, begins a new call. */
function continues(call: Call, index: number, id: string, name: string): boolean {
  if (id !== "" && call.id !== "") return id === call.id;
  if (index !== call.index) return false;
  return id !== "" || name === "" || call.name === "" || call.id !== "";
}
