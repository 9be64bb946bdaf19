/** Scenario: the ledger in a file: which requests count, periods, processes that race or are killed, and damage. */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Budget, budgetSchema } from "../../../src/config/budget-schema";
import { dayMs } from "../../../src/lib/format";
import type { Subject } from "../../../src/people/budgets/budgets";
import type { Reservation } from "../../../src/people/budgets/entries";
import { type LocalLedger, openLedger, reservationLifetime } from "../../../src/people/budgets/ledger";
import { unpriced } from "../../support/amounts";
import { temporaryFolder } from "../../support/temporary-folder";

const folder = temporaryFolder(afterAll);
let files = 0;
const open: LocalLedger[] = [];
afterEach(() => {
  for (const ledger of open.splice(0)) ledger.close();
});

const freshPath = () => join(folder, `${files++}.sqlite`);

function ledgerAt(path = freshPath(), now: () => number = Date.now): LocalLedger {
  const ledger = openLedger(path, { now, warn: (sentence) => expect.unreachable(sentence) });
  open.push(ledger);
  return ledger;
}

const budgetOf = (given: object): Budget =>
  budgetSchema().parse({ name: "all", unit: "requests", limit: 10, per: "month", ...given });

const anybody: Subject = { account: "octo", key: "anna", model: "gpt-4.1" };

function reserved(ledger: LocalLedger, budgets: Budget[], amounts = unpriced, subject = anybody): Reservation {
  const result = ledger.reserve(budgets, subject, amounts);
  if ("exceeded" in result) return expect.unreachable("the budget is exceeded") as never;
  return result.reservation;
}

const isExceeded = (ledger: LocalLedger, budgets: Budget[], amounts = unpriced, subject = anybody) =>
  "exceeded" in ledger.reserve(budgets, subject, amounts);

const usedOf = (ledger: LocalLedger, budget: Budget) => {
  const [state] = ledger.states([budget], anybody);
  return [state?.used, state?.reserved];
};

describe("periods", () => {
  test("a reservation expires, however the clock jumps", () => {
    let now = Date.parse("2026-11-15T12:00:00Z");
    const ledger = ledgerAt(freshPath(), () => now);
    const budget = budgetOf({ limit: 1 });
    const lost = reserved(ledger, [budget]);
    // TEAMS.md promises 66 minutes.
    expect(reservationLifetime).toBeLessThan(66 * 60_000);
    now += reservationLifetime - 1;
    expect(isExceeded(ledger, [budget])).toBe(true);
    now += 1;
    expect(usedOf(ledger, budget)).toEqual([0, 0]);
    // Set back: the reservation made before would otherwise last longer than any request.
    const ahead = reserved(ledger, [budget]);
    now -= reservationLifetime + 1;
    expect(usedOf(ledger, budget)).toEqual([0, 0]);
    // Ended after all, both count.
    ledger.settle(lost, unpriced);
    ledger.settle(ahead, unpriced);
    expect(usedOf(ledger, budget)).toEqual([2, 0]);
  });

  test("a clock that is corrected by seconds frees nothing that running requests have reserved", () => {
    let now = Date.parse("2026-11-15T12:00:00Z");
    const ledger = ledgerAt(freshPath(), () => now);
    const budget = budgetOf({ limit: 2 });
    for (let running = 0; running < 2; running++) reserved(ledger, [budget]);
    now -= 3_000;
    expect(isExceeded(ledger, [budget])).toBe(true);
  });

  test("a clock that is years ahead at a start costs no amount, and amounts that are long over go", () => {
    let now = Date.parse("2026-11-15T12:00:00Z");
    const path = freshPath();
    const restarted = () => {
      for (const ledger of open.splice(0)) ledger.close();
      return ledgerAt(path, () => now);
    };
    const budget = budgetOf({});
    const count = (ledger: LocalLedger) => ledger.settle(reserved(ledger, [budget]), unpriced);
    count(restarted());
    now += 800 * dayMs;
    restarted();
    now -= 800 * dayMs;
    expect(usedOf(restarted(), budget)).toEqual([1, 0]);
    for (const [days, periods] of [
      [399, 2],
      [2, 1],
    ] as const) {
      now += days * dayMs;
      count(restarted());
      expect(restarted().periods()).toHaveLength(periods);
    }
  });

  test("a damaged file is moved aside, and the warning says what is lost", () => {
    const path = freshPath();
    writeFileSync(path, "damaged ".repeat(1_000));
    const warnings: string[] = [];
    const ledger = openLedger(path, { now: Date.now, warn: (sentence) => warnings.push(sentence) });
    open.push(ledger);
    expect(usedOf(ledger, budgetOf({}))).toEqual([0, 0]);
    expect(warnings).toEqual([
      expect.stringMatching(/^The ledger of the budgets was damaged\..* and every budget starts again from 0\.$/),
    ]);
  });

  test("another unit or period of the same name starts from nothing", () => {
    const ledger = ledgerAt();
    ledger.settle(reserved(ledger, [budgetOf({})]), unpriced);
    expect(usedOf(ledger, budgetOf({}))).toEqual([1, 0]);
    expect(usedOf(ledger, budgetOf({ per: "day" }))).toEqual([0, 0]);
    expect(usedOf(ledger, budgetOf({ unit: "premium" }))).toEqual([0, 0]);
    expect(usedOf(ledger, budgetOf({ limit: 20 }))).toEqual([1, 0]);
  });
});

describe("processes", () => {
  const hold = (path: string, steps: string[], limit = 100) =>
    Bun.spawn(
      [process.execPath, "--no-env-file", join(import.meta.dir, "hold.ts"), path, steps.join(","), String(limit)],
      {
        stdout: "pipe",
        stderr: "inherit",
      },
    );
  const linesUntil = async (stream: ReadableStream<Uint8Array>, last: string) => {
    let text = "";
    for await (const chunk of stream.pipeThrough(
      new TextDecoderStream() as never,
    ) as unknown as AsyncIterable<string>) {
      text += chunk;
      if (text.includes(`${last}\n`)) break;
    }
    return text.trim().split("\n");
  };

  test("four processes that race for 100 requests get exactly 100", async () => {
    const path = freshPath();
    ledgerAt(path);
    const racers = Array.from({ length: 4 }, () => hold(path, Array<string>(100).fill("settle")));
    const lines = await Promise.all(racers.map(({ stdout }) => linesUntil(stdout, "done")));
    for (const racer of racers) racer.kill(9);
    expect(lines.flat().filter((line) => line === "settle")).toHaveLength(100);
    expect(lines.flat().filter((line) => line === "exceeded")).toHaveLength(300);
    const [state] = ledgerAt(path).states([budgetOf({ limit: 100 })], anybody);
    expect(state).toMatchObject({ used: 100, reserved: 0 });
  });

  test("a process that is killed leaves what it settled, and reservations that expire", async () => {
    const path = freshPath();
    let [settled, running] = [0, 0];
    for (let round = 0; round < 25; round += 1) {
      const steps = ["settle", "reserve", "release", "reserve"].slice(0, 1 + (round % 4));
      const child = hold(path, steps, 1_000);
      const lines = await linesUntil(child.stdout, steps.at(-1)!);
      child.kill(9);
      await child.exited;
      settled += lines.filter((line) => line === "settle").length;
      running += lines.filter((line) => line === "reserve").length;
    }
    let now = Date.now();
    const ledger = ledgerAt(path, () => now);
    const budget = budgetOf({ limit: 1_000 });
    const [used, held] = usedOf(ledger, budget) as [number, number];
    // A line is printed after its step, so a step may have happened without its line.
    expect(used).toBeGreaterThanOrEqual(settled);
    expect(used + held).toBeGreaterThanOrEqual(settled + running);
    expect(used + held).toBeLessThanOrEqual(settled + running + 25);
    now += reservationLifetime;
    expect(usedOf(ledger, budget)).toEqual([used, 0]);
  });
});

describe("damage", () => {
  const pageBytes = 4096;
  /** A ledger that has used so much of its budget and holds a reservation, with the pages of these tables and indexes overwritten. */
  function damaged(amount: number, names: string[]): string {
    const path = freshPath();
    const ledger = openLedger(path, { now: Date.now, warn: (sentence) => expect.unreachable(sentence) });
    for (let count = 0; count < amount; count += 1) ledger.settle(reserved(ledger, [budgetOf({})]), unpriced);
    reserved(ledger, [budgetOf({})]);
    ledger.close();
    const file = new Database(path);
    const pageOf = file.query<{ page: number }, [string]>("SELECT rootpage AS page FROM sqlite_schema WHERE name = ?");
    const pages = names.map((name) => pageOf.get(name)!.page);
    file.close();
    const bytes = readFileSync(path);
    for (const page of pages) bytes.fill(0xa5, (page - 1) * pageBytes, page * pageBytes);
    writeFileSync(path, bytes);
    return path;
  }

  test.each([
    ["of the amounts", ["used"], 7, 0, "every budget starts again from 0"],
    ["of the reservations", ["reservations", "reservations_by_key"], 7, 7, "what its budgets have used was taken over"],
    ["where nothing is used", ["reservations", "reservations_by_key"], 0, 0, "every budget starts again from 0"],
  ])(
    "a page %s that is damaged when the ledger is used is moved aside, and requests go on",
    (_, names, before, used, told) => {
      const path = damaged(before, names);
      const warnings: string[] = [];
      const ledger = openLedger(path, { now: Date.now, warn: (sentence) => warnings.push(sentence) });
      open.push(ledger);
      const budget = budgetOf({});
      const reservation = reserved(ledger, [budget]);
      ledger.settle(reservation, unpriced);
      expect(usedOf(ledger, budget)[0]).toBe(used + 1);
      expect(warnings).toEqual([expect.stringContaining(told)]);
      ledger.close();
      expect(usedOf(ledgerAt(path), budget)[0]).toBe(used + 1);
    },
  );

  test("an empty file in place of a ledger is said", () => {
    const path = freshPath();
    writeFileSync(path, "");
    const warnings: string[] = [];
    open.push(openLedger(path, { now: Date.now, warn: (sentence) => warnings.push(sentence) }));
    expect(warnings).toEqual([expect.stringContaining("was empty, so every budget starts again from 0")]);
  });
});
