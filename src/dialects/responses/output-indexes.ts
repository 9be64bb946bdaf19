/** Matches the items of a terminal event with the streamed items. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";

/**
 * The `output_index` under which each item of the output was streamed; undefined for one that was not. Usually it is the
 * position in the list; if an upstream counts differently, it is the first remaining item of the same kind.
 * @param shown The items that were added or done, by `output_index`.
 */
export function outputIndexes(
  output: readonly unknown[],
  shown: ReadonlyMap<number, JsonObject>,
): (number | undefined)[] {
  if (shown.size === 0) return [];
  const exact = output.map((item, at) => (isSame(shown.get(at), item) ? at : undefined));
  if (!exact.includes(undefined)) return exact;
  const taken = new Set(exact);
  const left = new Map<string, number[]>();
  for (const [index, item] of [...shown].reverse()) if (!taken.has(index)) push(left, kindOf(item), index);
  return exact.map((index, at) => index ?? left.get(kindOf(output[at]))?.pop());
}

function push(lists: Map<string, number[]>, key: string, index: number): void {
  const list = lists.get(key);
  if (list) list.push(index);
  else lists.set(key, [index]);
}

/** Ids change from event to event; only the id of a call does not. */
const kindOf = (item: unknown): string => (isObject(item) ? JSON.stringify([item.type, item.call_id]) : "");

const isSame = (shown: JsonObject | undefined, item: unknown): boolean =>
  shown !== undefined && isObject(item) && shown.type === item.type && shown.call_id === item.call_id;
