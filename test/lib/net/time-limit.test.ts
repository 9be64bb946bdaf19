/** Rows: promises with a time limit. */
import { expect, test } from "bun:test";
import { settledInTime, withTimeLimit } from "../../../src/lib/net/time-limit";

const never = new Promise<string>(() => {});
const failed = () => Promise.reject(new Error("broken"));
const statuses = (results: (PromiseSettledResult<unknown> | undefined)[]) => results.map((result) => result?.status);

test("a promise with a time limit gives its result, or what replaces it", async () => {
  expect(await withTimeLimit(Promise.resolve("here"), 1, () => "late")).toBe("here");
  expect(await withTimeLimit(never, 1, () => "late")).toBe("late");
});

test("a wait that is over before it begins leaves no failure that nobody takes", async () => {
  const unhandled: unknown[] = [];
  const note = (thrown: unknown) => void unhandled.push(thrown);
  process.on("unhandledRejection", note);
  const waited = withTimeLimit(failed(), undefined, () => "late", AbortSignal.abort("gone"));
  expect(await waited.catch((thrown: unknown) => thrown)).toBe("gone");
  await Bun.sleep(5);
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

test("several promises: results in their order, failures among them", async () => {
  const results = await settledInTime([failed(), Promise.resolve("a")], { others: 60_000, total: 60_000 });
  expect(statuses(results)).toEqual(["rejected", "fulfilled"]);
  expect(await settledInTime([], { others: 60_000 })).toEqual([]);
});

test("the first that is fulfilled limits the wait for the others; a failure does not", async () => {
  expect(statuses(await settledInTime([never, Promise.resolve("a")], { others: 1 }))).toEqual([undefined, "fulfilled"]);
  const later = Bun.sleep(20).then(() => "b");
  expect(statuses(await settledInTime([failed(), later], { others: 1 }))).toEqual(["rejected", "fulfilled"]);
});

test("the limit for all of them holds before any is fulfilled", async () => {
  expect(statuses(await settledInTime([never, failed()], { others: 60_000, total: 1 }))).toEqual([
    undefined,
    "rejected",
  ]);
});
