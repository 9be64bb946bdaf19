/** Lists that keep their identity where nothing changes. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "./conversation";

/** The same array if no item changes; undefined removes an item. */
export function mapped<Item>(items: Item[], change: (item: Item, index: number) => Item | undefined): Item[] {
  let results: Item[] | undefined;
  for (let index = 0; index < items.length; index++) {
    const item = items[index]!;
    const after = change(item, index);
    if (results === undefined && after === item) continue;
    results ??= items.slice(0, index);
    if (after !== undefined) results.push(after);
  }
  return results ?? items;
}

/** The same for the objects of a list; anything else stays. */
export const mapObjects = (list: unknown[], change: (object: JsonObject) => JsonObject | undefined): unknown[] =>
  mapped(list, (item) => (isObject(item) ? change(item) : item));

export function isSameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

/** The objects of a list; anything else is left out. */
export const objectsAmong = (list: unknown): JsonObject[] => (Array.isArray(list) ? list.filter(isObject) : []);
