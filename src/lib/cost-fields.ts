/** The schema of costs in answers: apart from `money.ts`, which the thread that reads the history loads too. */
import { z } from "zod";
import { lazy } from "./lazy";
import { costUnitNames } from "./money";

/** The fields of `Costs` in answers. */
export const costFields = lazy(() => ({
  cost: z
    .partialRecord(z.enum(costUnitNames), z.number().int())
    .describe("Billionths of an AI credit, and of a premium request; without a unit in which nothing is known."),
  cost_at_least: z.boolean().describe("The cost is at least this: of some of it, nothing or not all is known."),
}));
