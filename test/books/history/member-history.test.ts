/**
 * Rows: the history as one member reads it: how much of it at once. What it shows is in
 * `admin/member-isolation.test.ts`.
 */
import { expect, test } from "bun:test";
import type { History } from "../../../src/books/history/history";
import { historyOf } from "../../../src/books/history/member-history";
import { eachAnew, fill } from "./bench";

const here = eachAnew();

test("a member who asks without end waits for their own answers, and holds up nobody else", async () => {
  const local = here.open();
  fill(local, [{ member: "anna" }, { member: "ben" }]);
  let running = 0;
  let most = 0;
  // As a database takes its time, and fails once.
  const slow: History = Object.assign(Object.create(local) as History, {
    async totals(filters: Parameters<History["totals"]>[0]) {
      most = Math.max(most, ++running);
      await Bun.sleep(1);
      running -= 1;
      if (filters.status === 599) throw new Error("broken");
      return local.totals(filters);
    },
  });
  const [anna, ben] = [historyOf(slow, "anna"), historyOf(slow, "ben")];
  const asked = Promise.allSettled(
    Array.from({ length: 600 }, async (_, at) => (await anna.totals(at === 3 ? { status: 599 } : {})).request_count),
  );
  let answered = 0;
  void asked.then(() => (answered = 1));
  expect((await ben.totals({})).request_count).toBe(1);
  expect(answered).toBe(0);
  const outcomes = await asked;
  const counts = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const refused = outcomes.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  expect(new Set(counts)).toEqual(new Set([1]));
  expect(counts).toHaveLength(401);
  expect(refused.map(({ kind }) => kind ?? "broken").toSorted()).toEqual([
    "broken",
    ...new Array(198).fill("rate_limit"),
  ]);
  // Two of Anna's and the one of Ben.
  expect(most).toBe(3);
  // All turns are free again.
  expect((await anna.totals({})).request_count).toBe(1);
  expect(running).toBe(0);
});
