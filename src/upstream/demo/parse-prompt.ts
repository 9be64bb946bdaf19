/** Between a dialect and the model: each dialect reads its request into an `Ask`, and renders the `Plan`. */

export interface Tool {
  name: string;
  namespace?: string;
  /** `custom` takes free text, not JSON. */
  kind: "function" | "custom";
  description: string;
  schema: unknown;
}

/** What the model sees of a request. */
export interface Ask {
  model: string;
  stream: boolean;
  /** The newest text of a person, reminders taken out. */
  prompt: string;
  /** The tool results that end the conversation, in order; empty when a person's turn ends it. */
  results: string[];
  /** Texts of system and user turns: where the working folder is written. */
  background: string[];
  tools: Tool[];
  /** A tool that must be called; `any`: one of them; `none`: no tool may be called. */
  choice: "auto" | "any" | "none" | { name: string };
  /** Reasoning was asked for, forbidden, or left to the model. */
  thinks: boolean | undefined;
  /** The effort asked for, as written. */
  effort: string | undefined;
  /** Several calls at once are allowed. */
  parallel: boolean;
  /** JSON schema of the answer that was asked for. */
  schema: unknown;
  maxTokens: number | undefined;
  stops: string[];
  /** Turns of the model so far. */
  turns: number;
  images: number;
  /** The client marked something to be cached. */
  marks: boolean;
  /** Size of everything the model reads, in characters. */
  weight: number;
}

export interface Call {
  tool: Tool;
  /** An object; free text for a custom tool. */
  input: unknown;
}

export interface Plan {
  /** Pieces for streaming; joined they are the whole. */
  thinking: string[];
  /** The thinking happened but may not be shown. */
  redacted: boolean;
  text: string[];
  calls: Call[];
  finish: "stop" | "tool" | "length" | "refusal" | "stop-sequence";
  stopSequence?: string;
  /** A search the model made before it answered. */
  search?: string;
  usage: Usage;
}

/** Tokens. `input` is everything read, cached parts included; `output` includes `reasoning`. */
export interface Usage {
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
}
