/** Matches the items of a terminal event with the streamed items. */
import { isObject } from "../../json";
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
  const left = new Map(shown);
  const take = (index: number | undefined) => {
    if (index !== undefined) left.delete(index);
    return index;
  };
  const exact = output.map((item, at) => take(isSame(left.get(at), item) ? at : undefined));
  return exact.map((index, at) => index ?? take([...left].find(([, item]) => isSame(item, output[at]))?.[0]));
}

/** Ids change from event to event; only the id of a call does not. */
const isSame = (shown: JsonObject | undefined, item: unknown): boolean =>
  shown !== undefined && isObject(item) && shown.type === item.type && shown.call_id === item.call_id;
