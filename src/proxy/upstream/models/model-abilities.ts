/** What a model supports, as the model list and the admin API show it. */
import { z } from "zod";
import { lazy } from "../../../lib/lazy";
import type { Model } from "./model";

export const modelAbilitiesSchema = lazy(() =>
  z.object({
    tools: z.boolean(),
    parallel_tools: z.boolean(),
    vision: z.boolean(),
    structured_outputs: z.boolean(),
    adaptive_thinking: z.boolean(),
    thinking_budget: z.object({ min: z.number(), max: z.number() }).nullable(),
    reasoning_efforts: z.array(z.string()),
  }),
);

/** A thinking budget that the upstream does not list is null. */
export const modelAbilities = ({ supports }: Model): z.infer<ReturnType<typeof modelAbilitiesSchema>> => ({
  tools: supports.tools,
  parallel_tools: supports.parallelTools,
  vision: supports.vision,
  structured_outputs: supports.structuredOutputs,
  adaptive_thinking: supports.adaptiveThinking,
  thinking_budget: supports.thinkingBudget ?? null,
  reasoning_efforts: supports.efforts,
});
