/** Values that the answers of the admin API have in common,. An unknown value is null, never 0. */
import { z } from "zod";

export const count = z.number().int();
export const maybe = z.number().nullable();
export const text = z.string().nullable();
/** Unix time, ms. */
export const time = count.describe("Unix time, ms.");

/** The fields of a `Cost`. */
export const cost = {
  nano_credits: maybe.describe("Billionths of an AI credit; null if no cost is known in this unit."),
  premium_units: maybe.describe("Premium requests; null if no cost is known in this unit."),
  cost_at_least: z.boolean().describe("The cost is at least this: of some of it, nothing or not all is known."),
};
export const unknownCost = count.describe("Requests of which no cost is known, in either unit.");
