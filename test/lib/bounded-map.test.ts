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

test("a large map that is full holds hardly fewer entries than it may", () => {
  const max = 20_000;
  const map = new BoundedMap<number, number>(max);
  for (let key = 0; key < 1.5 * max; key++) map.set(key, key);
  expect(map.size).toBeWithin(0.93 * max, max + 1);
});
