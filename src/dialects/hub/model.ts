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
    /** Each request has to ask for adaptive thinking. */
    alwaysThinks?: boolean;
    /** No call can be forced. */
    noForcedCalls?: boolean;
    /** A call can be forced also where the model thinks adaptively. */
    forcedCallsThink?: boolean;
    /** The input of a tool's call is streamed as it is written, if the request wants that. */
    eagerInput?: boolean;
    /** In the Messages API, system messages may stand within the conversation. */
    systemTurns?: boolean;
    /** They may change the effort. */
    turnEfforts?: boolean;
    /** The range of thinking tokens that a request may set. */
    thinkingBudget?: { min: number; max: number };
    /** The effort values that the model accepts, weakest first. */
    efforts: string[];
    /** The upstream searches for tools itself. */
    toolSearch?: boolean;
    /** The upstream clears old parts of a conversation; undefined if that is not known. */
    contextEditing?: boolean;
    /** On chat completions, the output limit is `max_completion_tokens`. */
    completionTokens?: boolean;
    /** On chat completions, neither `temperature` nor `top_p` is accepted. */
    fixedSampling?: boolean;
  };
  /** Missing for a model of GitHub Copilot. */
  provider?: ProviderFacts;
}

/** What the owner says of a provider's API. The rules about what Copilot refuses do not change what passes through to it. */
interface ProviderFacts {
  /** The only name of the output limit that its chat API knows; either one is sent as it came if this is missing. */
  maxTokens?: "max_tokens" | "max_completion_tokens";
  /** The field of a chat message in which earlier thinking is sent back to it; it is left out if this is missing. */
  thinking?: "reasoning" | "reasoning_content";
  /** Abilities that neither the provider nor the owner states. The model is taken to have them: the provider decides. */
  assumed: readonly ("tools" | "vision" | "structuredOutputs")[];
}
