import type { Dialect } from "./conversation";

/** What a dialect needs to know of the model it writes a request for. Unknown limits are missing, never 0. */
export interface ModelFacts {
  /** The only id the upstream understands. */
  id: string;
  /** As the catalogue spells it: `Anthropic`, `OpenAI`, `Azure OpenAI`, `Google`, … */
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
    /** How many texts one embeddings request may hold. */
    inputs?: number;
    vision?: { imageBytes?: number; images?: number; mediaTypes?: string[] };
  };
  supports: {
    tools: boolean;
    parallelTools: boolean;
    vision: boolean;
    structuredOutputs: boolean;
    /** The model may be told to decide itself how long to think. */
    adaptiveThinking: boolean;
    /** Tokens of thinking that may be asked for. */
    thinkingBudget?: { min: number; max: number };
    /** Effort words the model takes, weakest first; empty when it takes none. */
    efforts: string[];
  };
}
