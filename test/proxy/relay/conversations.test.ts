/**
 * Scenario: what a conversation has of earlier replies: items by their ids, ids and members of other upstreams, names of
 * models; from `fixtures/scenes/conversations.txt`, and here what is kept of it.
 */
import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { RecentItems } from "../../../src/proxy/recent-items";
import { testScenes } from "../../support/scenes";

testScenes("conversations");

test("items take so many bytes at most: the oldest go first, and a huge one is not kept", () => {
  const recent = new RecentItems(() => 0);
  const item = (id: string, bytes: number) => ({ id, text: "x".repeat(bytes) });
  for (let count = 0; count < 40; count++) recent.keep("me", item(`${count}`, 1_000_000));
  const known = Array.from({ length: 40 }, (_, count) => recent.find("me", `${count}`) !== undefined);
  expect([known.indexOf(true), known.lastIndexOf(false)]).toEqual([7, 6]);
  recent.keep("me", item("huge", 5_000_000));
  expect(recent.find("me", "huge")).toBeUndefined();
  expect(recent.find("me", "39")).toEqual(item("39", 1_000_000));
  expect(recent.find("you", "39")).toBeUndefined();
});

test("items that are small take what is beside them, too, and letters of several bytes no more than those", () => {
  const sizeOf = (text: string, count: number) => {
    const recent = new RecentItems(() => 1.8e12);
    Bun.gc(true);
    const before = heapStats();
    for (let at = 0; at < count; at++) recent.keep("me", { id: `msg_${at}`, text });
    Bun.gc(true);
    const after = heapStats();
    expect(recent.find("me", `msg_${count - 1}`)).toBeDefined();
    return after.heapSize + after.extraMemorySize - before.heapSize - before.extraMemorySize;
  };
  for (const [text, count] of [["", 200_000] as const, ["Hello 👋 ".repeat(100), 60_000] as const])
    expect(sizeOf(text, count) / 2 ** 20).toBeLessThan(64);
});
