/** Rows: how long it is known which parameters an upstream refuses. Which they are: pairs.test.ts; what follows: `fixtures/scenes/refusals.txt`. */
import { expect, test } from "bun:test";
import { UnsupportedParams } from "../../../src/proxy/upstream/copilot/unsupported-params";

test("what is learnt holds for an hour, for that model", () => {
  let now = 0;
  const params = new UnsupportedParams(() => now);
  params.learn("m", "x");
  params.learn("other", "x");
  now = 1;
  params.learn("m", "y");
  expect([params.known("m"), params.known("other"), params.known("none")]).toEqual([["x", "y"], ["x"], []]);
  now = 3600_000;
  expect([params.known("m"), params.known("other")]).toEqual([["y"], []]);
  now = 3600_001;
  expect([params.known("m"), params.all()]).toEqual([[], []]);
});

test("a client that invents names does not fill the memory", () => {
  const params = new UnsupportedParams(() => 0);
  for (let at = 0; at < 2000; at++) params.learn("m", `x${at}`);
  expect(params.all().length).toBeLessThanOrEqual(500);
  expect(params.known("m")).toContain("x1999");
});
