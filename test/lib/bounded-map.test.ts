/** Rows: a map that holds so many entries at most. */
import { expect, test } from "bun:test";
import { BoundedMap } from "../../src/lib/bounded-map";

test("a new key removes the oldest one, and a written key is the newest", () => {
  const removed: number[] = [];
  const map = new BoundedMap<string, number>(2, (value) => removed.push(value));
  map.set("a", 1).set("b", 2).set("a", 3).set("c", 4);
  expect([...map]).toEqual([
    ["a", 3],
    ["c", 4],
  ]);
  expect(removed).toEqual([2]);
});
