/** Values that the answers of the admin API have in common, and their sums. An unknown value is null, never 0. */
import { z } from "zod";

export const count = z.number().int();
export const maybe = z.number().nullable();
export const text = z.string().nullable();
/** Unix time, ms. */
export const time = count.describe("Unix time, ms.");

/** Of the known values. */
export const sum = (values: readonly (number | null)[]): number =>
  values.reduce<number>((total, value) => total + (value ?? 0), 0);

/** The same; null if no value is known. */
export const sumKnown = (values: readonly (number | null)[]): number | null =>
  values.some((value) => value !== null) ? sum(values) : null;
