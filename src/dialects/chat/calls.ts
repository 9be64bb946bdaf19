/** Calls of tools, which come in pieces whose numbers cannot be trusted. */

import { randomUUID } from "node:crypto";
import { isObject, numberIn, parseJson } from "../../json";
import type { JsonObject } from "../hub/conversation";

/** A reply of more calls, or a call of a higher index, is no reply but an attack on our memory. */
export const callLimit = 1024;

/** What a piece of a call says; the index is the upstream's own, if it gives one. */
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

/** Claude numbers each of its parallel calls 0: only a new id, or without ids a name, tells a new call. */
export function continues(call: Pick<Call, "index" | "id" | "name">, index: number, id: string, name: string): boolean {
  if (id !== "" && call.id !== "") return id === call.id;
  if (index !== call.index) return false;
  return id !== "" || name === "" || call.name === "" || call.id !== "";
}

/** Gemini may leave the id of a call out; clients answer a call by its id, so it gets one. */
export function inventedCallId(replyId: unknown, number: number): string {
  return `call_${(typeof replyId === "string" && replyId !== "" ? replyId : randomUUID()).replaceAll(/[^\w-]/g, "").slice(-30)}_${number}`;
}

/** Gives parallel calls the numbers 0, 1, 2 … where the upstream calls them all 0, and an id to those without. */
export function callNumbers(onFixup: (fixup: string) => void) {
  const calls: Call[] = [];
  /** The latest call of each of the upstream's numbers. */
  const latest = new Map<number, Call>();

  const fixPiece = (piece: unknown, replyId: unknown): unknown => {
    if (!isObject(piece)) return undefined;
    const { id, name, input, index = calls.at(-1)?.index ?? 0 } = callPieceIn(piece);
    if (!isCallIndex(index) || calls.length === callLimit) return undefined;
    let call = latest.get(index);
    // Words for a call that never began.
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
    /** Each call's input is all there. */
    get whole() {
      return calls.every(({ input }) => input === "" || isJson(input));
    },
    /** The pieces of a delta; undefined when they are none. */
    fix(pieces: unknown[], replyId: unknown): unknown[] | undefined {
      const fixed = pieces.map((piece) => fixPiece(piece, replyId));
      if (fixed.includes(undefined)) return undefined;
      return fixed.some((piece, at) => piece !== pieces[at]) ? fixed : pieces;
    },
  };
}

interface Call {
  number: number;
  /** The upstream's own number and id. */
  index: number;
  id: string;
  name: string;
  input: string;
}

export type CallNumbers = ReturnType<typeof callNumbers>;

export const isJson = (text: string): boolean => parseJson(text) !== undefined;
