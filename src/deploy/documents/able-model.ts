/** The model with which the documents say what survives: it can do everything. */
import { dialects } from "../../dialects/hub/conversation";
import type { ModelFacts } from "../../dialects/hub/model";

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
