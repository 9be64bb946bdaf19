/** What requests are expected to cost, and did, in tests of budgets. */
import type { Cost } from "../../src/lib/money";

/** @param amount Null if the price is unknown. */
export const credits = (amount: number | null): Cost => ({
  unit: "credits",
  amount: amount === null ? null : amount * 1e9,
});
export const unpriced = credits(null);
