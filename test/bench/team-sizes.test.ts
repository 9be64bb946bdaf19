/** The figures of src/deploy/TEAMS.md beside its table follow from the same costs. */
import { expect, test } from "bun:test";
import { textOfDocument } from "../support/docs";
import { smallestTeam } from "./simulation";
import { needsOf, waitFor } from "./team-sizes";

/** The smallest team for which a part is beyond its limit, to 1 %. */
function breaksAt(name: string): number {
  let [holds, breaks] = [100, 1_000_000];
  while (breaks / holds > 1.01) {
    const middle = Math.round((holds + breaks) / 2);
    if (needsOf(middle).loads.find((load) => load.name === name)!.share > 1) breaks = middle;
    else holds = middle;
  }
  return breaks;
}

test.each([
  ["statistics read from the rows", "statistics of names that the rollup does not have together"],
  ["connections without PgBouncer", "Postgres' default of 100 connections"],
  ["a budget that all share", "one budget that everybody shares"],
  ["CPU of Postgres", "Postgres' CPU"],
  ["members in each server's memory", "the members in each server's memory"],
])("%s breaks where the page says so", (name, beginning) => {
  const line = textOfDocument("src/deploy/TEAMS.md")
    .split("\n")
    .find((each) => each.startsWith(`| ${beginning}`));
  const stated = Number(/([\d,]+) members \|/.exec(line ?? "")![1]!.replaceAll(",", ""));
  const computed = breaksAt(name);
  expect([stated / computed > 0.94, stated / computed < 1.06, computed]).toEqual([true, true, computed]);
});

test("the wait for one row is that of a queue with random arrivals and a fixed time of service", () => {
  // The mean of an M/D/1 queue at half load is half the time of service; 99 % of its waits are within some 3.3 of them.
  const wait = waitFor(50, 0.01);
  expect(wait).toBeWithin(28, 40);
  expect(waitFor(1, 0.01)).toBeLessThan(11);
  expect(waitFor(101, 0.01)).toBe(Number.POSITIVE_INFINITY);
});

test("a team has no server more than it needs, and two at least", () => {
  const traffic = { answerSeconds: 12, eventsPerSecond: 60, requestCpu: 200 };
  expect(smallestTeam({ ...traffic, requestsPerSecond: 0.1 }).servers).toBe(2);
  const { servers, load } = smallestTeam({ ...traffic, requestsPerSecond: 200 });
  expect([load <= 0.7, (load * servers) / (servers - 2) > 0.7]).toEqual([true, true]);
});
