/**
 * A request, independent of the dialect: turns of parts, and tools.
 *
 * Two-dialect rule: a concept gets a field here if two dialects support it. What only one dialect has is kept in the
 * `extras` of the object it belongs to, under its wire name, or as a `foreign` part or tool.
 */
import type { LongText } from "../../lib/net/json/json-skeleton";
import type { ServerToolCall, ServerToolOffer, ServerToolResult } from "./server-tools";

export const dialects = ["chat", "responses", "messages"] as const;

/** The wire format of an API family, which clients and upstreams speak. */
export type Dialect = (typeof dialects)[number];

/** No upstream speaks gemini. */
export const clientDialects = [...dialects, "gemini"] as const;

/** The wire format of a client. */
export type ClientDialect = (typeof clientDialects)[number];

/** Dialects that share field names: chat and responses are OpenAI's. Another vendor may use the same name for something else. */
export type Family = "openai" | "anthropic" | "google";

export const familyOf: Record<ClientDialect, Family> = {
  chat: "openai",
  responses: "openai",
  messages: "anthropic",
  gemini: "google",
};

export type JsonObject = Record<string, unknown>;

/**
 * Fields that only one API family has, under their wire names. `chat` has the fields of chat's messages, parts, calls and
 * tools that nobody reads: the Responses API would refuse them.
 */
export interface WithExtras {
  extras?: Partial<Record<Family | "chat", JsonObject>>;
}

/** A signature of thinking that only its issuer can read: `signature`, `reasoning_opaque`, `encrypted_content`, `thoughtSignature`. */
export interface Signature {
  dialect: ClientDialect;
  value: string;
  id?: string;
  /** The thinking itself is in it, and is not shown: Anthropic's `redacted_thinking`. */
  redacted?: true;
  /** The thinking that it proves, as it was made: clients may send a part of it back, or nothing. */
  text?: string;
}

export interface PlainField {
  /** In OpenAI's and Anthropic's APIs; Gemini's name is that of the row. */
  name: string;
  read: keyof Readers;
  clients: readonly ClientDialect[];
  upstreams: readonly Dialect[];
}

/** What the readers of `Fields` return. */
interface Readers {
  optionalNumber: number;
  optionalText: string;
  optionalBoolean: boolean;
}

const notMessages = ["chat", "responses", "gemini"] as const;

/** Fields that are one value and mean the same in each dialect that has them. A row is a property of `Conversation`. */
export const plainFields = {
  temperature: { name: "temperature", read: "optionalNumber", clients: clientDialects, upstreams: dialects },
  topP: { name: "top_p", read: "optionalNumber", clients: clientDialects, upstreams: dialects },
  topK: { name: "top_k", read: "optionalNumber", clients: ["messages", "gemini"], upstreams: ["messages"] },
  // Clients of the Responses API take these from chat completions.
  seed: { name: "seed", read: "optionalNumber", clients: notMessages, upstreams: ["chat"] },
  presencePenalty: { name: "presence_penalty", read: "optionalNumber", clients: notMessages, upstreams: ["chat"] },
  frequencyPenalty: {
    name: "frequency_penalty",
    read: "optionalNumber",
    clients: notMessages,
    upstreams: ["chat"],
  },
} as const satisfies Record<string, PlainField>;

type PlainFieldsOf<Rows extends Record<string, PlainField>> = { [Key in keyof Rows]?: Readers[Rows[Key]["read"]] };
export type PlainFields = PlainFieldsOf<typeof plainFields>;

export interface Conversation extends WithExtras, PlainFields {
  model: string;
  turns: Turn[];
  tools: Tool[];
  toolChoice?: "auto" | "none" | "required" | { name: string };
  /** The only tools that may be called when `toolChoice` is `auto` or `required`; undefined if all may. */
  allowedTools?: (string | ForeignTool)[];
  parallelTools?: boolean;
  /** Maximum number of output tokens. Anthropic's clients send 0 to fill the prompt cache without a reply. */
  maxTokens?: number;
  stop?: string[];
  reasoning?: Reasoning;
  format?: ResponseFormat;
  stream: boolean;
}

/** How much to think. Effort and budget are kept as they were sent; an encoder derives one from the other. */
export interface Reasoning {
  /** `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`; a plain string, because models add new values. */
  effort?: string;
  /** Tokens of thinking. */
  budget?: number;
  /** The model decides how long to think; false if an effort was sent without asking for thinking. */
  adaptive?: boolean;
  /** Thinking was explicitly disabled. */
  disabled?: boolean;
  /** How thinking is shown: `auto`, `concise`, `detailed`. */
  summary?: string;
}

/** The reply must be JSON that matches the schema, or any JSON object if there is none. */
export interface ResponseFormat {
  name?: string;
  description?: string;
  schema?: unknown;
  strict?: boolean;
  /** The reply is the value of the schema, a text, without the quotes of JSON. */
  isPlain?: true;
}

/** Consecutive parts of one role. System turns keep their place among the others. */
export interface Turn extends WithExtras {
  role: "system" | "user" | "assistant";
  parts: Part[];
  /** Its place in a responses request is the field `instructions`. */
  isInstructions?: true;
}

export type Part =
  | TextPart
  | ImagePart
  | FilePart
  | FileLinkPart
  | ThinkingPart
  | ToolCallPart
  | ToolResultPart
  | ServerCallPart
  | ServerResultPart
  | ForeignPart;

interface PartBase extends WithExtras {
  /** The prompt up to here is worth caching. */
  cache?: boolean;
}

export interface TextPart extends PartBase {
  kind: "text";
  text: LongText;
  /** The text is the model's refusal. */
  refusal?: true;
}

export interface ImagePart extends PartBase {
  kind: "image";
  source: { url: LongText } | { mediaType: string; base64: LongText };
}

export interface FilePart extends PartBase {
  kind: "file";
  name?: string;
  mediaType: string;
  base64: LongText;
}

/** A file that the upstream has to fetch. */
export interface FileLinkPart extends PartBase {
  kind: "file-link";
  name?: string;
  url: string;
}

export interface ThinkingPart extends PartBase {
  kind: "thinking";
  /** May be empty: a model can return a signature without text. */
  text: string;
  signature?: Signature;
}

export interface ToolCallPart extends PartBase {
  kind: "tool-call";
  id: string;
  name: string;
  /** JSON exactly as the model wrote it; for a freeform tool, the text itself. */
  input: string;
  freeform?: true;
  /** The client's name of the tool, if it differs. */
  localName?: string;
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

/** A call of a tool that ran while the model answered; its result follows in the same turn. */
export interface ServerCallPart extends PartBase, ServerToolCall {
  kind: "server-call";
}

export interface ServerResultPart extends PartBase, ServerToolResult {
  kind: "server-result";
}

/** A part that only one dialect has, as that dialect's JSON. */
export interface ForeignPart extends PartBase {
  kind: "foreign";
  dialect: ClientDialect;
  value: JsonObject;
  /** It is a piece of a message's content, and no item of its own. */
  isContent?: true;
  /** Parts that replace it for an upstream of another dialect. */
  instead?: Part[];
  /** It stands for the conversation before it, in a form that only its maker can read. */
  signature?: Signature;
  /** It belongs to a search of tools; `found` names the tools that can be called from here on. */
  toolSearch?: { found: string[] };
}

export type Tool = FunctionTool | FreeformTool | ForeignTool;

interface ToolBase extends WithExtras {
  /** The namespace that the tool is in, without its tools: the same object for all of them. */
  namespace?: JsonObject;
  /** The item of the input that lists the tool: the same object for all of them. */
  listedIn?: ToolItem;
  /** The client's name of it, if it differs. */
  localName?: string;
  /** It stands only where a search has found it. */
  isFound?: true;
}

/** An item of the input that lists tools. */
export interface ToolItem {
  /** Before which turn it stands. */
  at: number;
  /** The item without its tools. */
  item: JsonObject;
}

/** A tool that the client runs. */
interface ClientToolBase extends ToolBase {
  /** Unique in its conversation. */
  name: string;
  description?: string;
  /** The same tool is defined twice, identically. */
  isRepeated?: boolean;
  /** The model is to have it only once it has searched for it. The extras hold the dialect's own field. */
  isDeferred?: true;
}

export interface FunctionTool extends ClientToolBase {
  kind: "function";
  /** JSON Schema of the input object. */
  schema?: unknown;
  strict?: boolean;
  cache?: boolean;
  /** The client's own search of tools, as it was sent; other upstreams have it as this function. */
  clientSearch?: JsonObject;
}

/** A tool whose input is text of a grammar instead of JSON. */
export interface FreeformTool extends ClientToolBase {
  kind: "freeform";
  /** The grammar as it was sent. */
  grammar?: unknown;
}

/** A tool that the provider runs (web search, code execution), as its dialect's JSON. */
export interface ForeignTool extends ToolBase {
  kind: "foreign";
  dialect: ClientDialect;
  value: JsonObject;
  /** What is wanted of it, if dragoman can run it where the provider does not. */
  server?: ServerToolOffer;
}
