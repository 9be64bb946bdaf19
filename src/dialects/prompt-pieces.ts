/**
 * What a prompt is made of, piece by piece, in the order in which models read it. It is read from the outline, so that a request
 * that is passed on is not decoded for it. It is for measuring alone: nothing here keeps a text.
 */
import { isObject } from "../lib/json";
import { beginningOfLong, type LongText } from "../lib/net/json/json-skeleton";
import { omit } from "./hub/json";
import { objectsAmong } from "./hub/lists";
import { type Outline, type OutlineMessage, partsOf } from "./overview";

/** What a prompt is compared by with the one before it, as numbers. */
export interface PromptHashes {
  /** Of each group of tools, by the tool or its server. */
  tools: ReadonlyMap<string, number>;
  system: number;
  /** Of each message after the leading instructions, in their order; the first ones. */
  messages: Int32Array;
  /** How many messages there are. */
  messageCount: number;
  /** Long texts were hashed where they stand: hashes of both ways are not compared. */
  isLarge: boolean;
}

/** What a piece of a prompt is. `client` is text that the client put into the person's messages. */
export const pieceKinds = [
  "tools",
  "system",
  "person",
  "client",
  "answers",
  "reasoning",
  "calls",
  "results",
  "images",
  "files",
  "other",
] as const;
export type PieceKind = (typeof pieceKinds)[number];

/** Takes the pieces of a prompt. */
export interface PieceReader {
  /**
   * @param content A text, or any JSON.
   * @param tool The name of the tool whose definition, call or result it is. Only names that the request declares.
   */
  piece(kind: PieceKind, content: unknown, tool?: string): void;
  /** The pieces since the last one were a message's, or an item's. */
  endMessage(): void;
  /** Everything so far is to be kept in the upstream's cache. */
  mark(): void;
}

/** Reads a request's pieces. What is not understood is `other`. */
export function readPieces({ tools, system, messages }: Outline, to: PieceReader): void {
  const names = new Set<string>();
  readTools(tools, undefined, to, names);
  readParts("system", system?.(), to);
  const reader = new MessageReader(to, names);
  for (const message of messages) reader.read(message);
}

const toolName = /^[A-Za-z][\w.:/-]{0,127}$/;

/** @param namespace Of the tools that a client declares together. */
function readTools(tools: unknown, namespace: string | undefined, to: PieceReader, names: Set<string>): void {
  for (const tool of objectsAmong(tools)) {
    const declared = tool.functionDeclarations ?? tool.function_declarations;
    if (declared !== undefined) readTools(declared, namespace, to, names);
    else if (tool.type === "namespace" && Array.isArray(tool.tools))
      readTools(tool.tools, typeof tool.name === "string" ? tool.name : undefined, to, names);
    // The model sees it once a search has found it.
    else if (tool.defer_loading !== true) {
      const own = isObject(tool.function) ? tool.function.name : (tool.name ?? tool.server_label ?? tool.type);
      const full = typeof own === "string" && namespace !== undefined ? `${namespace}__${own}` : own;
      const name = typeof full === "string" && toolName.test(full) ? full : undefined;
      if (name !== undefined) names.add(name);
      if (typeof own === "string" && toolName.test(own)) names.add(own);
      to.piece("tools", tool.cache_control === undefined ? tool : omit(tool, marks), name);
      if (tool.cache_control != null) to.mark();
    }
  }
}

const marks: ReadonlySet<string> = new Set(["cache_control"]);

/** A text, a part, or a list of them, all of one kind. */
function readParts(kind: PieceKind, content: unknown, to: PieceReader): void {
  for (const part of partsOf(content)) {
    const text = isObject(part) ? (part.text ?? partsOf(part.parts)) : part;
    if (Array.isArray(text)) readParts(kind, text, to);
    else to.piece(kind, text);
    if (isObject(part) && part.cache_control != null) to.mark();
  }
}

/** What parts and items are by their types, in all dialects. A text's kind is that of its speaker. */
const kindsOfTypes = new Map<unknown, PieceKind | "text">([
  ["text", "text"],
  ["input_text", "text"],
  ["output_text", "text"],
  ["refusal", "text"],
  ["image", "images"],
  ["image_url", "images"],
  ["input_image", "images"],
  ["computer_screenshot", "images"],
  ["document", "files"],
  ["file", "files"],
  ["input_file", "files"],
  ["input_audio", "files"],
  ["thinking", "reasoning"],
  ["redacted_thinking", "reasoning"],
  ["reasoning", "reasoning"],
  ["tool_use", "calls"],
  ["tool_result", "results"],
]);

const kindsOfSpeakers = { system: "system", model: "answers", user: "person", tool: "results" } as const;

/** Elements in which clients put their own text into a person's messages: Claude Code 2.1.332, Codex 0.171, 2026-11. */
const clientsElement =
  /^\s*<(?:system-reminder|environment_context|user_instructions|subagent_notification|INSTRUCTIONS)>/;

const mayBeElement = /[<\s]/;

class MessageReader {
  /** The tools of the calls so far, by the calls' ids. */
  readonly #tools = new Map<unknown, string>();

  constructor(
    readonly to: PieceReader,
    readonly names: Set<string>,
  ) {}

  read({ by, content, item }: OutlineMessage): void {
    const kind = kindsOfSpeakers[by];
    if (item === undefined) {
      if (content === undefined) return;
      this.#part(content, kind, undefined);
    } else if (item.type === "additional_tools") readTools(item.tools, undefined, this.to, this.names);
    else if (typeof item.type === "string" && item.role === undefined && item.type !== "message")
      this.#part(item, kind, undefined);
    else {
      const tool = kind === "results" ? this.#toolOf(item) : undefined;
      for (const part of partsOf(item.parts ?? item.content)) this.#part(part, kind, tool);
      for (const call of objectsAmong(item.tool_calls)) this.#call(call);
      if (item.reasoning_content != null) this.to.piece("reasoning", item.reasoning_content);
    }
    this.to.endMessage();
  }

  #part(part: unknown, kind: PieceKind, tool: string | undefined): void {
    if (!isObject(part)) {
      this.#text(part, kind, tool);
      return;
    }
    const { type } = part;
    const known = kindsOfTypes.get(type) ?? kindOfForm(part, type);
    if (known === "text") {
      if (part.thought === true) this.to.piece("reasoning", part.text);
      else this.#text(part.text ?? part.refusal, kind, tool);
    } else if (known === "results") this.#result(part);
    else if (known === "calls") this.#call(part);
    else if (known === "reasoning")
      this.to.piece(known, part.thinking ?? part.data ?? part.encrypted_content ?? part.summary);
    else this.to.piece(known, part, tool);
    if (part.cache_control != null) this.to.mark();
  }

  #text(text: unknown, kind: PieceKind, tool: string | undefined): void {
    const isClients =
      kind === "person" &&
      typeof text === "string" &&
      mayBeElement.test(text[0] ?? "") &&
      clientsElement.test(beginningOfLong(text as LongText, 60));
    this.to.piece(isClients ? "client" : kind, text, tool);
  }

  #call(call: Record<string, unknown>): void {
    const inner = call.function ?? call.functionCall ?? call.function_call;
    const of = isObject(inner) ? inner : call;
    const name = this.#declared(of.name, call.namespace) ?? this.#declared(call.type, undefined);
    // Google's calls may have no id: the results name the function.
    const id = call.call_id ?? call.id ?? of.id;
    if (id != null && name !== undefined) this.#tools.set(id, name);
    this.to.piece("calls", of.input ?? of.arguments ?? of.args ?? of.action, name);
  }

  #result(part: Record<string, unknown>): void {
    const answer = part.functionResponse ?? part.function_response;
    const tool = this.#toolOf(isObject(answer) ? answer : part);
    if (isObject(answer)) {
      this.to.piece("results", answer.response, tool);
      for (const inner of partsOf(answer.parts)) this.#part(inner, "results", tool);
    } else for (const inner of partsOf(part.content ?? part.output ?? part.tools)) this.#part(inner, "results", tool);
  }

  #toolOf({ tool_use_id, tool_call_id, call_id, id, name }: Record<string, unknown>): string | undefined {
    return this.#tools.get(tool_use_id ?? tool_call_id ?? call_id ?? id) ?? this.#declared(name, undefined);
  }

  /** A model may call a tool by any words: they are no name then. */
  #declared(name: unknown, namespace: unknown): string | undefined {
    if (typeof name !== "string") return undefined;
    const full = typeof namespace === "string" ? `${namespace}__${name}` : name;
    return this.names.has(full) ? full : this.names.has(name) ? name : undefined;
  }
}

/** By the ending of the type, or by the members of a dialect whose parts have no type. */
function kindOfForm(part: Record<string, unknown>, type: unknown): PieceKind | "text" {
  if (typeof type === "string") {
    if (/(?:_use|_call)$/.test(type)) return "calls";
    return /(?:_result|_output|_response)$/.test(type) ? "results" : "other";
  }
  if (typeof part.text === "string") return "text";
  if (part.functionCall ?? part.function_call) return "calls";
  if (part.functionResponse ?? part.function_response) return "results";
  const media = part.inlineData ?? part.inline_data ?? part.fileData ?? part.file_data;
  if (!isObject(media)) return "other";
  return String(media.mimeType ?? media.mime_type).startsWith("image/") ? "images" : "files";
}
