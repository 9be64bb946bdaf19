/** No row of the tables is skipped in silence: each has a test of its name, or a reason. */
import { expect, test } from "bun:test";
import { attacks, faults, type LedgerRow, notHere, reports, reportsNotHere, shownBy, shownByPages } from "./cases";
import { idsOf, namesInTests, placeOf } from "./read";

const names = await namesInTests();
const named = new Set(names.flatMap(({ name }) => idsOf(name)));
const isShown = (shown: string | undefined) => {
  if (shown === undefined) return false;
  const { file, name } = placeOf(shown);
  return names.some((each) => each.file === file && each.name.includes(name));
};
const ids = (rows: readonly LedgerRow[]) => rows.map(({ id }) => id);

test("the tables are whole", () => {
  expect([attacks.length, faults.length, reports.length]).toEqual([195, 80, 91]);
  for (const rows of [attacks, faults, reports]) expect(new Set(ids(rows)).size).toBe(rows.length);
});

test("every attack and every fault has a test that bears its name, or a reason", () => {
  expect(
    ids([...attacks, ...faults]).filter((id) => !named.has(id) && !notHere[id] && !isShown(shownByPages[id])),
  ).toEqual([]);
});

test("every report is shown by a test, or has a reason", () => {
  const shared = new Set(ids(faults));
  const missing = ids(reports).filter((id) => {
    if (reportsNotHere[id]) return false;
    if (shownBy[id]) return !isShown(shownBy[id]);
    return shared.has(id) || !named.has(id);
  });
  expect(missing).toEqual([]);
});

test("a reason stands only where there is no test", () => {
  expect(Object.keys(notHere).filter((id) => named.has(id))).toEqual([]);
});
