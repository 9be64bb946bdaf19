/** Between a dialect and the demo's model: each dialect reads its request into a `ModelRequest`, and writes the `ModelReply` as its answer. */

export interface Tool {
  name: string;
  namespace?: string;
  /** `custom` tools take text instead of JSON. */
  kind: "function" | "custom";
  description: string;
  schema: unknown;
  /** The model is to search for it first. */
  isDeferred?: boolean;
}

/** A model that searches for its tools does not have these at first. */
export const presentTools = (tools: readonly Tool[]) => tools.filter(({ isDeferred }) => !isDeferred);

/** A request as the demo's model sees it. */
export interface ModelRequest {
  model: string;
  stream: boolean;
  /** The newest text of a person, without reminders. */
  prompt: string;
  /** The tool results at the end of the conversation, in order; empty if it ends with a person's turn. */
  results: string[];
  /** Texts of system and user turns, which name the working folder. */
  background: string[];
  tools: Tool[];
  /** A tool that must be called; `any`: one of the tools; `none`: no tool. */
  choice: "auto" | "any" | "none" | { name: string };
  /** Reasoning was requested or forbidden; undefined leaves it to the model. */
  thinks: boolean | undefined;
  /** The requested effort, unchanged. */
  effort: string | undefined;
  /** Several calls at once are allowed. */
  parallel: boolean;
  /** The JSON schema that the answer must satisfy. */
  schema: unknown;
  maxTokens: number | undefined;
  stops: string[];
  /** The number of the model's turns so far. */
  turns: number;
  images: number;
  /** Everything the model reads, in the order in which it is cached. */
  blocks: PromptBlock[];
  /** `prompt_cache_key`. */
  cacheKey: string | undefined;
  /** Size of the texts that the model reads, in units of which four are a token of the plain tokenizer. */
  weight: number;
  /** The same of the definitions of tools. */
  toolWeight: number;
}

export interface PromptBlock {
  /** Its JSON, without a cache mark. */
  text: string;
  /** It has a cache mark: the prompt up to its end is to be cached. */
  marked: boolean;
}

export interface Call {
  tool: Tool;
  /** An object; a string for a custom tool. */
  input: unknown;
}

export interface ModelReply {
  /** The pieces for streaming; together they are the full text. */
  thinking: string[];
  /** The model thought, but the text may not be shown. */
  redacted: boolean;
  text: string[];
  calls: Call[];
  finish: "stop" | "tool" | "length" | "refusal" | "stop-sequence";
  stopSequence?: string;
  /** A web search that the model made before its answer. */
  search?: string;
  usage: Usage;
}

/** In tokens. `input` includes the cached parts; `output` includes `reasoning`. */
export interface Usage {
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
}
