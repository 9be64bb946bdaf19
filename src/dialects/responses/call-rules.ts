/** Rules about calls and their results: which belong together, and what tells them apart. */

import { isObject, sameJsonAs } from "../../lib/json";
import { type CallPiece, longestId, lostResultHeading, ownCallIds, pairCalls } from "../hub/call-pairs";
import type { JsonObject } from "../hub/conversation";
import { textIn, withMember, without } from "../hub/json";
import { mapObjects } from "../hub/lists";
import { searches } from "../hub/searches";

export const typeOf = (value: unknown): string => (isObject(value) ? textIn(value.type) : "");

/** The type of the result that belongs to a call of each type. */
const resultTypes: Record<string, string> = {
  function_call: "function_call_output",
  custom_tool_call: "custom_tool_call_output",
};

/** Calls of functions and of freeform tools, and their results. */
export const pairTypes: ReadonlySet<string> = new Set([...Object.keys(resultTypes), ...Object.values(resultTypes)]);

const isCall = (item: unknown): boolean => Object.hasOwn(resultTypes, typeOf(item));

/** The items as calls and results of any kind. What the model says ends no turn of it. */
const historyOf = (input: unknown[]): (CallPiece<unknown> | undefined)[] =>
  input.flatMap((item): (CallPiece<unknown> | undefined)[] => {
    const type = typeOf(item);
    if (!isObject(item)) return [undefined];
    const { call_id: id, role } = item;
    if (id !== undefined) return [{ kind: type.endsWith("_output") ? "result" : "call", id, item }];
    return type === "reasoning" || type.endsWith("_call") || role === "assistant" ? [] : [undefined];
  });

/**
 * Calls without results, and results without calls, are refused; interrupted turns leave both. So is a result of another
 * kind than its call.
 */
export function callPairs(input: unknown[]): unknown[] {
  const pairs = pairCalls(historyOf(input));
  return input.flatMap((item: unknown): unknown[] => {
    const piece = pairs.get(item);
    if (!piece || !isObject(item) || !pairTypes.has(typeOf(item))) return [item];
    if (piece.kind === "call") return piece.partner ? [item] : [item, noAnswer(item)];
    if (!piece.partner) return [lostResult(item)];
    const type = resultTypes[typeOf(piece.partner.item)] ?? item.type;
    return [type === item.type ? item : { ...item, type }];
  });
}

const noAnswer = (call: JsonObject): JsonObject => ({
  type: resultTypes[typeOf(call)],
  call_id: call.call_id,
  output: "This call was never answered.",
});

function lostResult({ call_id, output }: JsonObject): JsonObject {
  const heading = { type: "input_text", text: lostResultHeading(call_id) };
  const parts: unknown[] = Array.isArray(output) ? output : [{ type: "input_text", text: output }];
  const content = [heading, ...parts.filter((part) => isObject(part) && part.text !== "")];
  return { type: "message", role: "user", content };
}

/**
 * Calls of one id: "Duplicate item found with id fc_call_…" (seen at Copilot from 2026-05 to 2026-08; the upstream makes the
 * item's id of the `call_id`). Clients repeat ids when they go on with a session of another model.
 */
export function repeatedCallIds(input: unknown[]): unknown[] {
  const own = ownCallIds(historyOf(input), longestId, isCall);
  return own.size === 0
    ? input
    : mapObjects(input, (item) => withMember(item, "call_id", own.get(item) ?? item.call_id));
}

/** Items of one id are refused as well: a repeated item is left out, and another one loses the id. */
export function repeatedItemIds(input: unknown[]): unknown[] {
  const first = new Map<string, (other: JsonObject) => boolean>();
  return input.flatMap((item: unknown) => {
    if (!isObject(item) || typeof item.id !== "string") return [item];
    const isSame = first.get(item.id);
    if (!isSame) {
      first.set(item.id, sameJsonAs(item));
      return [item];
    }
    return isSame(item) ? [] : [without(item, ["id"])];
  });
}

/**
 * "Missing namespace for function_call 'look'. It does not exist in the default namespace": a call of a tool that stands
 * in a namespace needs its name, which some clients lose (AI SDK's messages of a page, GitHub's own CLI, 2026-08). It is
 * added where only one namespace has such a tool.
 */
export function callNamespace(input: unknown[], tools: unknown): unknown[] {
  const isBare = (item: unknown): item is JsonObject => isObject(item) && isCall(item) && item.namespace == null;
  if (!input.some(isBare)) return input;
  const places = namespacesOf(input, tools);
  return input.map((item: unknown) => {
    const [namespace, ...others] = isBare(item) ? (places.get(textIn(item.name)) ?? []) : [];
    if (!isBare(item) || namespace === undefined || others.length > 0) return item;
    return { ...item, namespace };
  });
}

/** Where the tools of each name stand; undefined for the default namespace. */
function namespacesOf(input: unknown[], tools: unknown): Map<string, Set<string | undefined>> {
  const places = new Map<string, Set<string | undefined>>();
  const read = (list: unknown, namespace?: string) => {
    for (const tool of Array.isArray(list) ? list : []) {
      if (!isObject(tool)) continue;
      if (tool.type === "namespace") read(tool.tools, textIn(tool.name));
      else if (typeof tool.name === "string")
        places.set(tool.name, (places.get(tool.name) ?? new Set()).add(namespace));
    }
  };
  read(tools);
  for (const item of input) if (isObject(item) && listTypes.has(typeOf(item))) read(item.tools);
  return places;
}

const listTypes = new Set(["additional_tools", searches["tool-search"].responses.output]);
