/** Models as a codec sees them. */
import { dialects } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";

/** One that can do everything. */
export const ableModel = (id: string, vendor: string): ModelFacts => ({
  id,
  vendor,
  dialects: [...dialects],
  limits: { context: 200_000, prompt: 160_000, output: 32_000, vision: { mediaTypes: ["image/png"] } },
  supports: {
    tools: true,
    parallelTools: true,
    vision: true,
    structuredOutputs: true,
    adaptiveThinking: true,
    thinkingBudget: { min: 1024, max: 32_000 },
    efforts: ["low", "medium", "high"],
  },
});

/** One that can do nothing but answer. */
export const unableModel = (id: string, vendor: string): ModelFacts => ({
  id,
  vendor,
  dialects: [...dialects],
  limits: { output: 1000, fullOutput: 1000 },
  supports: {
    tools: false,
    parallelTools: false,
    vision: false,
    structuredOutputs: false,
    adaptiveThinking: false,
    noForcedCalls: true,
    efforts: [],
    completionTokens: true,
    fixedSampling: true,
  },
});
