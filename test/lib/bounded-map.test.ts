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

test("a full map takes a new key nearly as quickly as one without a limit", () => {
  const max = 20_000;
  const nanoseconds = (map: Map<number, number>) => {
    for (let key = 0; key < max; key++) map.set(key, key);
    const since = Bun.nanoseconds();
    for (let key = max; key < 1.5 * max; key++) map.set(key, key);
    return Bun.nanoseconds() - since;
  };
  const quickest = (made: () => Map<number, number>) => Math.min(...[1, 2, 3].map(() => nanoseconds(made())));
  const full = new BoundedMap<number, number>(max);
  expect(quickest(() => full)).toBeLessThan(100 * quickest(() => new Map()));
  expect(full.size).toBeWithin(0.93 * max, max + 1);
});
