/**
 * What a client asks, in nobody's spelling: turns of parts, and tools.
 *
 * Two-dialect rule: an idea gets a field here when two dialects have a word for it. What only one has rides in the
 * `extra` bag of the thing it belongs to, under the wire's own name, or stays a `foreign` part or tool.
 */
export const dialects = ["chat", "responses", "messages"] as const;

/** The wire format of an API family. */
export type Dialect = (typeof dialects)[number];

/** Dialects that share words: chat and responses speak OpenAI's; the messages dialect's words are false friends. */
export type Family = "openai" | "anthropic";

export const familyOf: Record<Dialect, Family> = { chat: "openai", responses: "openai", messages: "anthropic" };

export type JsonObject = Record<string, unknown>;

/** Fields only one family has a word for, under that word. */
export interface WithExtras {
  extras?: Partial<Record<Family, JsonObject>>;
}

/** A proof only its maker can read: a thinking signature, an opaque, an encrypted content (with the id it is bound to). */
export interface Signature {
  dialect: Dialect;
  value: string;
  id?: string;
}

export interface Conversation extends WithExtras {
  model: string;
  turns: Turn[];
  tools: Tool[];
  toolChoice?: "auto" | "none" | "required" | { name: string };
  /** The only tools that may be called, beside a choice of `auto` or `required`; missing where all may. */
  allowedTools?: (string | ForeignTool)[];
  parallelTools?: boolean;
  /** Upper bound of output tokens; 0 where the prompt is only to be read, as Anthropic's clients warm a cache. */
  maxTokens?: number;
  stop?: string[];
  temperature?: number;
  topP?: number;
  reasoning?: Reasoning;
  format?: ResponseFormat;
  stream: boolean;
}

/** How hard to think. Effort and budget are two ways to say it: both are kept as said, an encoder derives the missing one. */
export interface Reasoning {
  /** `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`: open, because models invent new ones. */
  effort?: string;
  /** Tokens of thinking. */
  budget?: number;
  /** The model decides how long to think; false when an effort was said for the words alone. */
  adaptive?: boolean;
  /** Thinking was switched off in so many words. */
  disabled?: boolean;
  /** How thinking is shown: `auto`, `concise`, `detailed`. */
  summary?: string;
}

/** The reply must be JSON: of this schema, or of any shape when there is none. */
export interface ResponseFormat {
  name?: string;
  description?: string;
  schema?: unknown;
  strict?: boolean;
}

/** One voice's uninterrupted say. System turns keep their place among the others. */
export interface Turn extends WithExtras {
  role: "system" | "user" | "assistant";
  parts: Part[];
}

export type Part =
  | TextPart
  | ImagePart
  | FilePart
  | FileLinkPart
  | ThinkingPart
  | ToolCallPart
  | ToolResultPart
  | ForeignPart;

interface PartBase extends WithExtras {
  /** The prompt up to here is worth caching. */
  cache?: boolean;
}

export interface TextPart extends PartBase {
  kind: "text";
  text: string;
  /** The model declined in these words. */
  refusal?: true;
}

export interface ImagePart extends PartBase {
  kind: "image";
  source: { url: string } | { mediaType: string; base64: string };
}

export interface FilePart extends PartBase {
  kind: "file";
  name?: string;
  mediaType: string;
  base64: string;
}

/** A file that whoever answers has to fetch. */
export interface FileLinkPart extends PartBase {
  kind: "file-link";
  name?: string;
  url: string;
}

export interface ThinkingPart extends PartBase {
  kind: "thinking";
  /** May be empty: a model can show the proof without the words. */
  text: string;
  signature?: Signature;
}

export interface ToolCallPart extends PartBase {
  kind: "tool-call";
  id: string;
  name: string;
  /** JSON text as the model wrote it, never re-spelt; for a freeform tool, the text itself. */
  input: string;
  freeform?: true;
}

export interface ToolResultPart extends PartBase {
  kind: "tool-result";
  /** The id of the call it answers. */
  id: string;
  parts: Part[];
  /** The tool failed. */
  failed?: true;
  /** It answers a call of a freeform tool. */
  freeform?: true;
}

/** Something only one dialect has, in that dialect's own JSON. */
export interface ForeignPart extends PartBase {
  kind: "foreign";
  dialect: Dialect;
  value: unknown;
  /** What it says, in everybody's words: another dialect is shown this in its place. */
  instead?: Part[];
}

export type Tool = FunctionTool | FreeformTool | ForeignTool;

export interface FunctionTool extends WithExtras {
  kind: "function";
  /** Unique in its conversation. */
  name: string;
  description?: string;
  /** JSON Schema of the input object. */
  schema?: unknown;
  strict?: boolean;
  cache?: boolean;
  /** Another tool says the same word for word. */
  isRepeated?: boolean;
}

/** A tool whose input is text of a grammar instead of JSON. */
export interface FreeformTool extends WithExtras {
  kind: "freeform";
  name: string;
  description?: string;
  /** The grammar, in the wire's words. */
  grammar?: unknown;
  /** Another tool says the same word for word. */
  isRepeated?: boolean;
}

/** A tool the service itself runs (web search, code execution), in its dialect's own JSON. */
export interface ForeignTool extends WithExtras {
  kind: "foreign";
  dialect: Dialect;
  value: unknown;
}
