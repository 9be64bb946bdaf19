/** Rules about calls and their results: which belong together, and what tells them apart. */
import { isObject, isSameJson } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { textIn, without } from "../hub/json";
import { lostResultHeading } from "../hub/lost-result";

export const typeOf = (value: unknown): string => (isObject(value) ? textIn(value.type) : "");

const isCall = (item: unknown): boolean => callTypes.has(typeOf(item));
const callTypes = new Set(["function_call", "custom_tool_call"]);

/** Calls without results, and results without calls, are refused; interrupted turns leave both. */
export function callPairs(input: unknown[]): unknown[] {
  const calls = new Set<unknown>();
  const results = new Set<unknown>();
  for (const item of input)
    if (isObject(item) && item.call_id !== undefined)
      (typeOf(item).endsWith("_output") ? results : calls).add(item.call_id);

  return input.flatMap((item: unknown) => {
    if (!isObject(item) || !Object.hasOwn(pairs, typeOf(item))) return [item];
    const isResult = typeOf(item).endsWith("_output");
    if ((isResult ? calls : results).has(item.call_id)) return [item];
    if (isResult) return [lostResult(item)];
    return [item, { type: pairs[typeOf(item)], call_id: item.call_id, output: "This call was never answered." }];
  });
}

/** The type of the item that belongs to each. */
export const pairs: Record<string, string> = {
  function_call: "function_call_output",
  custom_tool_call: "custom_tool_call_output",
  function_call_output: "function_call",
  custom_tool_call_output: "custom_tool_call",
};

function lostResult({ call_id, output }: JsonObject): JsonObject {
  const heading = { type: "input_text", text: lostResultHeading(call_id) };
  const parts: unknown[] = Array.isArray(output) ? output : [{ type: "input_text", text: output }];
  const content = [heading, ...parts.filter((part) => isObject(part) && part.text !== "")];
  return { type: "message", role: "user", content };
}

/** The longest id, of a call or an item, that OpenAI accepts. */
export const longestId = 64;

/**
 * Calls of one id: "Duplicate item found with id fc_call_…" (seen at Copilot from 2026-05 to 2026-08; the upstream makes the
 * item's id of the `call_id`). Clients repeat ids when they go on with a session of another model, and models that count
 * their calls begin anew in each turn (`functions.look:0`). Each call after the first gets an id of its own, and so does its
 * result: the first one that follows, in the order of the calls.
 */
export function repeatedCallIds(input: unknown[]): unknown[] {
  const taken = new Set<unknown>();
  const counts = new Map<string, number>();
  /** The new ids of the calls that wait for a result, by the id that the client wrote. */
  const waiting = new Map<string, string[]>();
  let isGroup = false;
  const renamed = (item: JsonObject, call_id: string) => (call_id === item.call_id ? item : { ...item, call_id });
  return input.map((item: unknown) => {
    const isOne = isCall(item);
    // A call of an earlier turn that was never answered does not get the result of a later one.
    if (isOne && !isGroup) waiting.clear();
    if (typeOf(item) !== "reasoning") isGroup = isOne;
    if (!isObject(item) || typeof item.call_id !== "string") return item;
    const { call_id } = item;
    if (isOne) {
      const id = freeId(call_id, taken, counts);
      taken.add(id);
      const ids = waiting.get(call_id);
      if (ids) ids.push(id);
      else waiting.set(call_id, [id]);
      return renamed(item, id);
    }
    if (!typeOf(item).endsWith("_output")) return item;
    return renamed(item, waiting.get(call_id)?.shift() ?? call_id);
  });
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

/** Items of one id are refused as well: a repeated item is left out, and another one loses the id. */
export function repeatedItemIds(input: unknown[]): unknown[] {
  const first = new Map<string, JsonObject>();
  return input.flatMap((item: unknown) => {
    if (!isObject(item) || typeof item.id !== "string") return [item];
    const earlier = first.get(item.id);
    if (!earlier) {
      first.set(item.id, item);
      return [item];
    }
    return isSameJson(earlier, item) ? [] : [without(item, ["id"])];
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

const listTypes = new Set(["additional_tools", "tool_search_output"]);
