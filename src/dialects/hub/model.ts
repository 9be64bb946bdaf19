import type { Dialect } from "./conversation";

/** What a dialect needs to know about a model to write a request for it. Unknown limits are undefined, never 0. */
export interface ModelFacts {
  /** The id that the upstream knows. */
  id: string;
  /** As in the catalogue: `Anthropic`, `OpenAI`, `Azure OpenAI`, `Google`, … */
  vendor: string;
  dialects: Dialect[];
  limits: {
    /** Tokens of prompt and reply together. */
    context?: number;
    /** Tokens of prompt: the limit the upstream enforces. */
    prompt?: number;
    /** Tokens of output. */
    output?: number;
    /** Tokens of output when the reply is not streamed. */
    fullOutput?: number;
    /** Maximum number of texts in one embeddings request. */
    inputs?: number;
    vision?: { imageBytes?: number; images?: number; mediaTypes?: string[] };
  };
  supports: {
    tools: boolean;
    parallelTools: boolean;
    vision: boolean;
    structuredOutputs: boolean;
    /** The model can decide by itself how long to think. */
    adaptiveThinking: boolean;
    /** The range of thinking tokens that a request may set. */
    thinkingBudget?: { min: number; max: number };
    /** The effort values that the model accepts, weakest first. */
    efforts: string[];
  };
}
