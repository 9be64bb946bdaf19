/** Models as a codec sees them. */
import { dialects } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";

export { ableModel } from "../../src/deploy/documents/able-model";

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
