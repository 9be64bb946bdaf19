/**
 * Scenario: what a refusal has taught is paid for once, from `fixtures/scenes/refusals.txt`; and how long the memory of it
 * lasts.
 */
import { expect, test } from "bun:test";
import { Lessons } from "../../../src/proxy/upstream/copilot/lessons";
import { testScenes } from "../../support/scenes";

testScenes("refusals");

test("the memory of lessons keeps apart what is of another model, account, kind and mark", () => {
  const lessons = new Lessons(() => 0);
  lessons.learn({ kind: "item", scope: "a", about: "mark", value: true });
  expect(lessons.of("item", "b", "mark")).toBeUndefined();
  expect(lessons.of("item", "a", "other")).toBeUndefined();
  expect(lessons.of("choice", "a", "mark")).toBeUndefined();
  expect([lessons.knows("a"), lessons.knows("b")]).toEqual([true, false]);
});

test("the memory of lessons adds up the tools that a model rejects, and stays small", () => {
  const lessons = new Lessons(() => 0);
  for (const name of ["one", "two", "one"]) lessons.learn({ kind: "tools", scope: "a", value: [name] });
  expect(lessons.of("tools", "a")).toEqual(["one", "two"]);
  for (let at = 0; at < 500; at++) lessons.learn({ kind: "tools", scope: "a", value: [`tool ${at}`] });
  expect(lessons.of("tools", "a")).toHaveLength(100);
  for (let at = 0; at < 30_000; at++) lessons.learn({ kind: "item", scope: "b", about: `${at}`, value: true });
  expect([lessons.of("item", "b", "5000"), lessons.of("item", "b", "29999")]).toEqual([undefined, true]);
  expect(lessons.of("tools", "a")).toBeUndefined();
});
