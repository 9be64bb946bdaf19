/**
 * Rows: how tables and sentences fit a terminal: nothing is lost, no word is split, and colours follow NO_COLOR and
 * FORCE_COLOR.
 */
import { expect, test } from "bun:test";
import { usageLines } from "../../src/cli/format-usage";
import { table } from "../../src/cli/layout";
import { styled } from "../../src/cli/terminal";
import type { UsageItem } from "../../src/routes/usage";
import { inProcess } from "../support/in-process";
import fc from "../support/random";
import { atTerminal } from "../support/terminal";

/** The lines of a table on a terminal of this width. */
function onTerminal<T>(columns: number, make: () => T): T {
  const former = Object.getOwnPropertyDescriptors(process.stdout);
  Object.defineProperty(process.stdout, "isTTY", { value: true, configurable: true });
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

test("a table leaves out spare columns before it breaks a cell", () => {
  const cells = [
    ["id", "name", "state"],
    ["claude-sonnet-4.6", "Claude Sonnet 4.6", "ready"],
  ];
  expect(onTerminal(60, () => table(cells, { spare: ["name"] }))).toHaveLength(2);
  expect(onTerminal(30, () => table(cells, { spare: ["name"] }))).toEqual([
    "id                 state",
    "claude-sonnet-4.6  ready",
  ]);
});

test("an account is one line at 80 columns, also while it cools down", () => {
  const [now, later] = [Date.now(), (days: number) => new Date(now + days * 86_400_000).toISOString()];
  const account = {
    ...{ id: "mine", plan: "individual", unit: "credits", state: "cooling", until: later(0), reason: null },
    ...{ remaining: 5, entitlement: 7, unlimited: false, overage: false, overage_count: null, stale: false },
    ...{ reset_at: later(9), quota_error: null, limited_models: [] },
  } as unknown as UsageItem;
  const [, ...lines] = onTerminal(80, () => usageLines([account]));
  expect(lines).toEqual([expect.stringMatching(/^mine +5 of 7 .+ until \d/)]);
});

test("a table has lines of any length where there is no terminal", () => {
  expect(table([["a".repeat(300), "b c ".repeat(50).trim()]])).toHaveLength(1);
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
