/** Requests of the responses dialect: a flat list of items. */

import { isObject } from "../../lib/json";
import type { TranslationOptions } from "../codec";
import type {
  Conversation,
  JsonObject,
  Part,
  Reasoning,
  ResponseFormat,
  Tool,
  ToolItem,
  Turn,
} from "../hub/conversation";
import { Fields } from "../hub/fields";
import { dropOverwritten, includedLogprobs } from "../hub/ignorable-fields";
import { arrayAt, countIn, filled, filledAt, listAt, objectAt, omit, omitUndefined, textIn } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { type Notes, unnoted } from "../hub/notes";
import { decodePlainFields, encodePlainFields } from "../hub/plain-fields";
import { effortOf } from "../hub/reasoning";
import { searches } from "../hub/searches";
import { addCacheKey, decodeStop, extrasOf, refuseSeveral, roles } from "../openai";
import { asResponsesRequest } from "../other-api";
import { sealOf, unpacked } from "./compaction";
import { chatOnly, ownExtras } from "./extras";
import {
  decodeCall,
  decodeContent,
  decodeResult,
  decodeThinking,
  encodeContent,
  encodeItem,
  freeformResultsIn,
  isContent,
  type Writing,
} from "./parts";
import { applyRules, refuseStored } from "./rules";
import { decodeSearchCall } from "./server-tools";
import { decodeToolSearchCall, decodeToolSearchOutput, isClients } from "./tool-search";
import { decodeChoice, decodeTools, encodeChoice, encodeTools, type ToolNames } from "./tools";

// ── Tables ──

/** The type of a message's text, by role. */
const textTypes: Record<Turn["role"], string> = { system: "input_text", user: "input_text", assistant: "output_text" };

/** What an input may be, as its refusal says it. */
const inputTypes = "a string or an array";

// ── Decode ──

/** @throws ProxyError `invalid_request` if there is no input, or if the request refers to stored data. */
export function checkRequest(body: JsonObject): void {
  refuseStored(body);
  if (typeof body.input !== "string" && !isWarmUp(body)) filledAt(body.input, "input", inputTypes);
}

/** A client that will send its request soon: the prompt may be read, and nothing is to be generated. */
export const isWarmUp = (body: JsonObject): boolean => body.generate === false;

/**
 * Reads a request. Normalized, because the meaning is the same: a string input or content is a list of one text, a
 * message has a type, an output of one plain text is a string, `strict` and `stream` are set; null values, empty lists
 * of tools, annotations or logprobs, and messages without content are omitted.
 */
export function decodeRequest(body: unknown): Conversation {
  const request = new Fields(asResponsesRequest(objectAt(body, "body")));
  refuseStored(request.object);
  const scope: ToolNames = { tools: [], taken: new Map(), names: new Map(), wireTools: new Map() };
  const draft: Draft = { turns: [], scope, searches: [], spoke: false, closed: false };
  const instructions = request.optionalText("instructions");
  if (instructions !== undefined)
    draft.turns.push({
      role: "system",
      parts: [{ kind: "text", text: instructions }],
      isInstructions: true,
    });
  decodeTools(listAt(request.any("tools"), "tools"), "tools", scope, {});
  decodeInput(request.any("input"), draft);
  const choice = decodeChoice(request.any("tool_choice"), scope);
  const reasoning = Fields.at(request.any("reasoning") ?? {}, "reasoning");
  const textOptions = decodeTextOptions(Fields.at(request.any("text") ?? {}, "text"));

  return {
    model: request.text("model"),
    turns: draft.turns,
    tools: withMostUses(scope.tools, request.object.max_tool_calls),
    toolChoice: choice.toolChoice,
    ...(choice.allowedTools ? { allowedTools: choice.allowedTools } : {}),
    parallelTools: request.optionalBoolean("parallel_tool_calls"),
    maxTokens: request.optionalCount("max_output_tokens"),
    stop: decodeStop(request.any("stop")),
    ...decodePlainFields(request, "responses"),
    reasoning: decodeReasoning(reasoning),
    format: textOptions.format,
    stream: request.optionalBoolean("stream") ?? false,
    ...extrasOf(
      omitUndefined({
        ...request.rest(),
        ...choice.extras,
        ...textOptions.extras,
        reasoning: reasoning.rest(),
      }),
    ),
  };
}

/** The limit of OpenAI's own tools is that of each one that runs here in its place. */
function withMostUses(tools: Tool[], limit: unknown): Tool[] {
  const maxUses = countIn(limit);
  if (maxUses === undefined) return tools;
  return tools.map((tool) =>
    tool.kind === "foreign" && tool.server ? { ...tool, server: { ...tool.server, maxUses } } : tool,
  );
}

interface Draft {
  turns: Turn[];
  scope: ToolNames;
  /** The ids of searches of tools whose results come later. */
  searches: string[];
  /** The last turn holds a message: the next message begins a new turn. */
  spoke: boolean;
  /** The last turn is closed: whatever follows begins a new turn. */
  closed: boolean;
}

function decodeInput(input: unknown, draft: Draft): void {
  if (typeof input === "string") return void draft.turns.push({ role: "user", parts: [{ kind: "text", text: input }] });
  arrayAt(input, "input", inputTypes).forEach((value, index) => {
    const path = `input[${index}]`;
    const item = objectAt(value, path);
    const type = item.type ?? (item.role === undefined ? undefined : "message");
    const decode = typeof type === "string" && Object.hasOwn(itemDecoders, type) ? itemDecoders[type] : undefined;
    if (decode) decode(item, path, draft);
    else decodeForeign(item, draft);
  });
}

const { responses: webSearch } = searches["web-search"];
const { responses: toolSearch } = searches["tool-search"];

const itemDecoders: Record<string, (item: JsonObject, path: string, draft: Draft) => void> = {
  message: decodeMessage,
  reasoning: (item, _path, draft) => add(draft, "assistant", decodeThinking(item)),
  function_call: (item, path, draft) => add(draft, "assistant", decodeCall(item, path, draft.scope)),
  custom_tool_call: (item, path, draft) =>
    add(draft, "assistant", { ...decodeCall(item, path, draft.scope), freeform: true }),
  function_call_output: (item, path, draft) => add(draft, "user", decodeResult(item, path)),
  custom_tool_call_output: (item, path, draft) => add(draft, "user", { ...decodeResult(item, path), freeform: true }),
  additional_tools: decodeAdditionalTools,
  compaction(item, path, draft) {
    for (const read of unpacked(item))
      if (read.type === "message") decodeMessage(read, path, draft);
      else decodeForeign(read, draft);
  },
  [webSearch.call]: (item, _path, draft) => add(draft, "assistant", decodeSearchCall(item)),
  [toolSearch.call](item, path, draft) {
    const id = textIn(item.id) || path.replaceAll(/\W+/g, "_");
    draft.searches.push(id);
    add(draft, "assistant", decodeToolSearchCall(item, id, draft.scope));
  },
  [toolSearch.output](item, path, draft) {
    const role = isClients(item) ? "user" : "assistant";
    add(draft, role, decodeToolSearchOutput(item, path, draft.searches.shift() ?? textIn(item.call_id), draft.scope));
  },
};

function decodeMessage(item: JsonObject, path: string, draft: Draft): void {
  const role = typeof item.role === "string" && Object.hasOwn(roles, item.role) ? roles[item.role] : undefined;
  if (!role) {
    decodeForeign(item, draft);
    return;
  }
  const content = typeof item.content === "string" ? [{ type: textTypes[role], text: item.content }] : item.content;
  const parts = content == null ? [] : decodeContent(content, `${path}.content`, textTypes[role]);
  const fields = new Fields(item);
  fields.skip("type", "role", "content");
  const extras = extrasOf({ ...fields.rest(), ...(item.role === "developer" ? { role: item.role } : {}) });
  const last = draft.turns.at(-1);
  // Thinking and calls before a message belong to its turn; a turn holds one message, so that each keeps its extras.
  if (role === "assistant" && last?.role === role && !draft.spoke && !draft.closed) {
    for (const part of parts) last.parts.push(part);
    Object.assign(last, extras);
  } else draft.turns.push({ role, parts, ...extras });
  draft.spoke = true;
  draft.closed = false;
}

/** Adds an item that is not a message to the turn of its role. */
function add(draft: Draft, role: "user" | "assistant", part: Part): void {
  const last = draft.turns.at(-1);
  if (last?.role === role && !draft.closed && (role === "assistant" || !draft.spoke)) last.parts.push(part);
  else {
    draft.turns.push({ role, parts: [part] });
    draft.spoke = false;
    draft.closed = false;
  }
}

/** An item that only this dialect has keeps its position. */
function decodeForeign(item: JsonObject, draft: Draft): void {
  const type = typeof item.type === "string" ? item.type : "";
  const isAnswer = type.endsWith("_output") || type.endsWith("_response");
  const signature = sealOf(item);
  add(draft, isAnswer ? "user" : "assistant", {
    kind: "foreign",
    dialect: "responses",
    value: item,
    ...(signature ? { signature } : {}),
  });
}

function decodeAdditionalTools(item: JsonObject, path: string, draft: Draft): void {
  const fields = new Fields(item, path);
  const tools = listAt(fields.any("tools"), fields.pathOf("tools"));
  if (tools.length === 0) {
    decodeForeign(item, draft);
    return;
  }
  const listedIn: ToolItem = { at: draft.turns.length, item: fields.rest() ?? {} };
  decodeTools(tools, fields.pathOf("tools"), draft.scope, { listedIn });
  draft.closed = true;
}

function decodeReasoning(reasoning: Fields): Reasoning | undefined {
  const effort = reasoning.optionalText("effort");
  const summary = reasoning.optionalText("summary");
  return effort === undefined && summary === undefined ? undefined : omitUndefined({ effort, summary });
}

/** `text`: its format is read into the hub; `verbosity` has the same name in the chat dialect. */
function decodeTextOptions(text: Fields): { format?: ResponseFormat; extras: JsonObject } {
  const wire = text.any("format");
  const verbosity = text.any("verbosity") ?? undefined;
  const extras = (format: unknown): JsonObject =>
    omitUndefined({ verbosity, text: format == null ? text.rest() : { ...text.rest(), format } });
  const isSchema = isObject(wire) && wire.type === "json_schema" && isObject(wire.schema);
  if (!isObject(wire) || (!isSchema && wire.type !== "json_object")) return { extras: extras(wire) };
  const format = text.fields("format");
  format.skip("type", "schema");
  return {
    format: omitUndefined({
      name: format.optionalText("name"),
      description: format.optionalText("description"),
      schema: isSchema ? wire.schema : undefined,
      strict: format.optionalBoolean("strict"),
    }),
    extras: extras(format.rest()),
  };
}

// ── Encode ──

/** Writes a request for an upstream of this dialect. */
export function encodeRequest(
  conversation: Conversation,
  model: ModelFacts,
  options: TranslationOptions = { webSearch: true },
): JsonObject {
  const { cache, notes = unnoted } = options;
  const extras = encodeExtras(conversation, notes);
  const tools = encodeTools(conversation, notes);
  if (conversation.stop) notes.addDropped("stop");

  const body = omitUndefined({
    ...extras,
    model: model.id,
    instructions: instructionsOf(conversation),
    input: encodeInput(conversation, tools.additional, notes),
    tools: tools.list.length > 0 ? tools.list : undefined,
    tool_choice: encodeChoice(conversation),
    parallel_tool_calls: conversation.parallelTools,
    max_output_tokens: conversation.maxTokens,
    ...encodePlainFields(conversation, "responses", notes),
    reasoning: encodeReasoning(conversation, model),
    text: encodeTextOptions(conversation),
    store: extras.store ?? false,
    stream: conversation.stream,
  });
  dropOverwritten(extras, body, notes);
  addCacheKey(body, cache, notes);
  return applyRules(body, model, options);
}

export function instructionsOf({ turns }: Conversation): string | undefined {
  const parts = turns.find(({ isInstructions }) => isInstructions)?.parts;
  return parts?.map((part) => (part.kind === "text" ? part.text : "")).join("\n\n");
}

function encodeExtras(conversation: Conversation, notes: Notes): JsonObject {
  const { n, ...openai } = conversation.extras?.openai ?? {};
  refuseSeveral(n);
  const { verbosity, text, reasoning, tool_choice, stream_options, ...extras } = ownExtras(
    { extras: { ...conversation.extras, openai } },
    chatOnly.request,
    notes,
  );
  // Usage is always sent, so the chat dialect's `include_usage` is not needed.
  const options = isObject(stream_options) ? omit(stream_options, new Set(["include_usage"])) : stream_options;
  // A chat client sends it with `logprobs`; here it needs the `include` value.
  const { top_logprobs, ...others } = extras;
  const isShown = Array.isArray(extras.include) && extras.include.includes(includedLogprobs);
  if (top_logprobs != null && !isShown) notes.addDropped("top_logprobs");
  return omitUndefined({ ...others, top_logprobs: isShown ? top_logprobs : undefined, stream_options: options });
}

function encodeInput(conversation: Conversation, additional: Map<ToolItem, JsonObject[]>, notes: Notes): JsonObject[] {
  const items: JsonObject[] = [];
  const writing: Writing = { conversation, freeformResults: freeformResultsIn(conversation), notes };
  const placeTools = (from: number, to: number) => {
    for (const [{ at, item }, tools] of additional) if (at >= from && at < to) items.push({ ...item, tools });
  };
  conversation.turns.forEach((turn, at) => {
    placeTools(at, at + 1);
    if (!turn.isInstructions) encodeTurn(turn, writing, items);
  });
  placeTools(conversation.turns.length, Number.POSITIVE_INFINITY);
  return items;
}

function encodeTurn(turn: Turn, writing: Writing, items: JsonObject[]): void {
  const { role, ...extras } = ownExtras(turn, chatOnly.turn, writing.notes);
  let content: JsonObject[] = [];
  const endMessage = () => {
    if (content.length > 0)
      items.push({ ...extras, type: "message", role: role === "developer" ? role : turn.role, content });
    content = [];
  };
  for (const part of turn.parts) {
    if (isContent(part)) {
      content.push(encodeContent(part, textTypes[turn.role], writing.notes));
      continue;
    }
    const isPiece = part.kind === "foreign" && part.isContent;
    if (!isPiece) endMessage();
    const item = encodeItem(part, writing);
    if (item) (isPiece ? content : items).push(item);
  }
  endMessage();
}

function encodeReasoning(conversation: Conversation, model: ModelFacts): JsonObject | undefined {
  const { reasoning } = conversation;
  const extras = conversation.extras?.openai?.reasoning;
  // What is asked for is sent as it is; a rule adapts it to the model.
  const able = effortOf(reasoning, model);
  const effort = reasoning?.disabled ? able && "none" : (reasoning?.effort ?? able);
  return filled(omitUndefined({ ...(isObject(extras) ? extras : {}), effort, summary: reasoning?.summary }));
}

export function encodeTextOptions({ format, extras }: Conversation): JsonObject | undefined {
  const text = isObject(extras?.openai?.text) ? extras.openai.text : {};
  const verbosity = extras?.openai?.verbosity;
  const wireFormat = format ? encodeFormat(format, text.format) : text.format;
  return filled(omitUndefined({ ...text, format: wireFormat, verbosity }));
}

function encodeFormat({ name, description, schema, strict }: ResponseFormat, wireFormat: unknown): JsonObject {
  const others = isObject(wireFormat) ? wireFormat : {};
  if (schema === undefined) return { ...others, type: "json_object" };
  return omitUndefined({ ...others, type: "json_schema", name: name ?? "reply", description, schema, strict });
}
