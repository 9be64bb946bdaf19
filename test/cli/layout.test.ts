/**
 * Rows: how tables and sentences fit a terminal: nothing is lost, no word is split, and colours follow NO_COLOR and
 * FORCE_COLOR.
 */
import { afterEach, expect, setSystemTime, test } from "bun:test";
import { usageLines } from "../../src/cli/format-usage";
import { table } from "../../src/cli/layout";
import { styled } from "../../src/cli/terminal";
import type { UsageItem } from "../../src/routes/usage";
import { inProcess } from "../support/in-process";
import { testPairs } from "../support/pairs";
import fc from "../support/random";
import { atTerminal } from "../support/terminal";

/** The lines of a table on a terminal of this width; null is none. */
function onTerminal<T>(columns: number | null, make: () => T): T {
  const former = Object.getOwnPropertyDescriptors(process.stdout);
  Object.defineProperty(process.stdout, "isTTY", { value: columns !== null, configurable: true });
  Object.defineProperty(process.stdout, "columns", { value: columns, configurable: true });
  try {
    return make();
  } finally {
    for (const name of ["isTTY", "columns"] as const)
      if (former[name]) Object.defineProperty(process.stdout, name, former[name]);
      else Reflect.deleteProperty(process.stdout, name);
  }
}

const words = fc
  .array(fc.stringMatching(/^[a-z0-9]{1,12}$/), { minLength: 1, maxLength: 8 })
  .map((all) => all.join(" "));
/** With heads of one short word each, as all tables have them. */
const rows = fc
  .integer({ min: 1, max: 7 })
  .chain((count) =>
    fc.tuple(
      fc.array(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: count, maxLength: count }),
      fc.array(fc.array(words, { minLength: count, maxLength: count }), { minLength: 1, maxLength: 5 }),
    ),
  )
  .map(([heads, cells]) => [heads, ...cells]);

test("a table fits the terminal wherever its longest word does, and keeps every word whole", () => {
  let broken = 0;
  fc.assert(
    fc.property(rows, fc.integer({ min: 30, max: 120 }), (cells, columns) => {
      const lines = onTerminal(columns, () => table(cells));
      for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns);
      const shown = new Set(lines.join(" ").split(/\s+/));
      // A block names its first column by its place alone.
      const [, ...below] = cells;
      expect(
        below
          .flat()
          .join(" ")
          .split(" ")
          .filter((word) => !shown.has(word)),
      ).toEqual([]);
      if (lines.length > cells.length) broken++;
    }),
  );
  expect(broken).toBeGreaterThan(10);
});

testPairs("cli", {
  /** The columns of a terminal (null: there is none), options, and rows. */
  table: (columns: number | null, options: object, ...rows: string[][]) =>
    onTerminal(columns, () => table(rows, options)),
  /** The columns, the first number, and what is special of accounts at noon of 10 November: the lines below the heads. */
  usage(columns: number | null, first: number | null, ...accounts: object[]) {
    const plain = { id: "octo", plan: "individual", unit: "premium", entitlement: 300, unlimited: false };
    const quota = {
      ...plain,
      overage: false,
      remaining: 200,
      overage_count: null,
      quota_error: null,
      stale: false,
      updated_at: null,
    };
    const more = { state: "ready", reason: null, until: null, reset_at: "2026-12-01T00:00:00Z", limited_models: [] };
    const items = accounts.map((each) => ({ ...quota, ...more, ...each }) as unknown as UsageItem);
    setSystemTime(new Date("2026-11-10T12:00:00Z"));
    Object.assign(process.env, { TZ: "UTC", FORCE_COLOR: "1" });
    return onTerminal(columns, () => usageLines(items, first ?? undefined).slice(1));
  },
});
const { TZ = "UTC" } = process.env;
afterEach(() => {
  setSystemTime();
  process.env.TZ = TZ;
  delete process.env.FORCE_COLOR;
});

const coloured = /\x1b\[3[123]m|\x1b\[1m/;

test("colours are for a terminal that has them, unless NO_COLOR is set, and go into a pipe only with FORCE_COLOR", async () => {
  await using terminal = atTerminal(["help", "start"]);
  await terminal.exited;
  expect(terminal.written()).toMatch(coloured);
  for (const [env, columns, expected] of [
    [{}, 80, true],
    [{ NO_COLOR: "1" }, 80, false],
    [{ TERM: "dumb" }, 80, false],
    [{}, undefined, false],
    [{ FORCE_COLOR: "1" }, undefined, true],
  ] as const)
    expect([env, coloured.test((await inProcess(["help", "start"], env, { columns })).stdout)]).toEqual([
      env,
      expected,
    ]);
});

test("colours come from dragoman alone: those in a text of somebody else are escaped", () => {
  expect(styled("green", "a\x1b[31mb")).not.toContain("\x1b[31m");
  expect(table([["a\x1b[8mb"]]).join("")).not.toContain("\x1b[8m");
});
