/** Tool calls, which are streamed in pieces whose indexes are not reliable. */

import { isObject, numberIn, parseJson } from "../../json";
import type { JsonObject } from "../hub/conversation";

/** Maximum number of calls in a reply, and maximum index: protects the memory against a faulty upstream. */
export const callLimit = 1024;

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

export function isCallIndex(index: unknown): index is number {
  return typeof index === "number" && Number.isInteger(index) && index >= 0 && index < callLimit;
}

/** Claude gives all parallel calls the index 0: only a new id, or without ids a name, begins a new call. */
export function continues(call: Pick<Call, "index" | "id" | "name">, index: number, id: string, name: string): boolean {
  if (id !== "" && call.id !== "") return id === call.id;
  if (index !== call.index) return false;
  return id !== "" || name === "" || call.name === "" || call.id !== "";
}

/** Gemini may omit a call's id; clients refer to a call by its id, so it gets one. */
export function inventedCallId(replyId: unknown, number: number): string {
  return `call_${(typeof replyId === "string" && replyId !== "" ? replyId : crypto.randomUUID()).replaceAll(/[^\w-]/g, "").slice(-30)}_${number}`;
}

/** Numbers parallel calls 0, 1, 2 … where the upstream gives all of them 0, and adds missing ids. */
export function callNumbers(onFixup: (fixup: string) => void) {
  const calls: Call[] = [];
  /** The latest call of each upstream index. */
  const latest = new Map<number, Call>();

  const fixPiece = (piece: unknown, replyId: unknown): unknown => {
    if (!isObject(piece)) return undefined;
    const { id, name, input, index = calls.at(-1)?.index ?? 0 } = callPieceIn(piece);
    if (!isCallIndex(index) || calls.length === callLimit) return undefined;
    let call = latest.get(index);
    // Input for a call that never began.
    if (id === "" && name === "" && !call) return input === "" ? piece : undefined;
    let fixed = piece;
    if (!call || !continues(call, index, id, name)) {
      call = { number: calls.length, index, id, name, input: "" };
      calls.push(call);
      latest.set(index, call);
      if (id === "") {
        onFixup("tool-id");
        fixed = { ...fixed, id: inventedCallId(replyId, call.number) };
      }
    }
    call.id ||= id;
    call.name ||= name;
    call.input += input;
    if (piece.index === call.number) return fixed;
    onFixup("tool-index");
    return { ...fixed, index: call.number };
  };

  return {
    /** Whether each call's input is complete. */
    get whole() {
      return calls.every(({ input }) => input === "" || isJson(input));
    },
    /** The fixed pieces of a delta; undefined if they are invalid. */
    fix(pieces: unknown[], replyId: unknown): unknown[] | undefined {
      const fixed = pieces.map((piece) => fixPiece(piece, replyId));
      if (fixed.includes(undefined)) return undefined;
      return fixed.some((piece, at) => piece !== pieces[at]) ? fixed : pieces;
    },
  };
}

interface Call {
  number: number;
  /** The upstream's index and id. */
  index: number;
  id: string;
  name: string;
  input: string;
}

export type CallNumbers = ReturnType<typeof callNumbers>;

export const isJson = (text: string): boolean => parseJson(text) !== undefined;
