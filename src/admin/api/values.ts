/** Values that the answers of the admin API have in common. An unknown value is null, never 0. */
import { z } from "zod";

export const count = z.number().int();
export const maybe = z.number().nullable();
export const text = z.string().nullable();
/** Unix time, ms. */
export const time = count.describe("Unix time, ms.");
