/**
 * Rows: the history as one member reads it: how much of it at once. What it shows is in
 * `admin/member-isolation.test.ts`.
 */
import { expect, test } from "bun:test";
import type { History } from "../../../src/books/history/history";
import { historyOf } from "../../../src/books/history/member-history";
import { type Portion, packed } from "../../../src/books/history/portions";
import type { KeptRatio } from "../../../src/books/history/token-ratios";
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

test("each question is of the member's own rows, and those of the whole history are refused", async () => {
  const empty = here.open();
  here.path += "-of-two";
  const full = here.open();
  const made: Portion = { kind: "system", tool: null, count: 1, tokens: 9, cached: 0, cost: 1, grown: null };
  fill(full, [
    {
      ...{ member: "anna", request_id: "of-anna", session: "s", prompt: "p", cached_tokens: 3 },
      portions: packed([made]),
    },
    { member: "ben" },
  ]);
  const asked: Record<string, (history: History) => unknown> = {
    list: (history) => history.list({}, 9),
    get: (history) => history.get("of-anna"),
    count: (history) => history.count(),
    lastOf: (history) => history.lastOf({}),
    totals: (history) => history.totals({}),
    statistics: (history) => history.statistics({}, ["day"]),
    largestSessions: (history) => history.largestSessions({}, 9),
    prompts: (history) => history.prompts({}, 9),
    portions: (history) => history.portions({}),
  };
  const refused: typeof asked = {
    after: (history) => history.after(0, 9),
    oldest: (history) => history.oldest(),
    prune: (history) => history.prune(),
    tokenRatios: (history) => history.tokenRatios(),
    keepTokenRatio: (history) => history.keepTokenRatio({} as KeptRatio),
  };
  const functions = Object.entries(Object.getOwnPropertyDescriptors(historyOf(full, "anna"))).filter(
    ([, { value }]) => value,
  );
  const others = ["add", "flush", "close"];
  expect(functions.map(([name]) => name).toSorted()).toEqual(
    [...Object.keys({ ...asked, ...refused }), ...others].toSorted(),
  );
  for (const [name, ask] of Object.entries(asked)) {
    const [anna, nobody] = [await ask(historyOf(full, "anna")), await ask(historyOf(full, "nobody"))];
    const nothing = await ask(historyOf(empty, "nobody"));
    expect([name, nobody]).toEqual([name, nothing]);
    expect([name, anna]).not.toEqual([name, nothing]);
  }
  for (const ask of Object.values(refused)) expect(() => ask(historyOf(full, "anna"))).toThrow("Only the owner");
});
