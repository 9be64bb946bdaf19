/** Chat completion requests: a list of messages. */

import { quoted, words } from "../../lib/errors";
import { joinTexts, type LongText } from "../../lib/net/json/json-skeleton";
import type { TranslationOptions } from "../codec";
import type { Conversation, JsonObject, Part, Reasoning, ResponseFormat, Turn } from "../hub/conversation";
import { Fields } from "../hub/fields";
import { dropOthers, dropOverwritten, isIgnorable } from "../hub/ignorable-fields";
import { filledAt, objectAt, omitUndefined, refuse } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { type Notes, unnoted } from "../hub/notes";
import { decodePlainFields, encodePlainFields } from "../hub/plain-fields";
import { onlyAllowed } from "../hub/tools";
import { addCacheKey, decodeStop, extrasOf, refuseSeveral, roles } from "../openai";
import { asChatRequest } from "../other-api";
import { cacheOf, ownExtras, responsesOnly, unreadExtras } from "./extras";
import {
  decodeCall,
  decodeContent,
  decodeResult,
  decodeThinking,
  encodeCache,
  encodeCall,
  encodeContent,
  encodeResult,
  serialized,
} from "./parts";
import { applyRules, isOpenAi, limitNameOf } from "./rules";
import { decodeSearch, encodeSearch } from "./server-tools";
import { thinkingFields } from "./thinking";
import { decodeChoice, decodeTool, encodeChoice, encodeTools } from "./tools";

// ── Decode ──

/** @throws ProxyError `invalid_request` if there is no message. */
export function checkRequest({ messages }: JsonObject): void {
  filledAt(messages, "messages");
}

/** Reads a request. */
export function decodeRequest(body: unknown): Conversation {
  const request = new Fields(asChatRequest(objectAt(body, "body")));
  for (const param of ["functions", "function_call"])
    if (request.object[param] != null)
      refuse(param, `\`${param}\` is not supported; send \`tools\` and \`tool_choice\`.`);
  const maxTokens = request.any("max_completion_tokens") == null ? "max_tokens" : "max_completion_tokens";
  request.skip("max_tokens");
  const choice = decodeChoice(request.any("tool_choice"));
  const format = decodeFormat(request.any("response_format"));
  return omitUndefined({
    model: request.text("model"),
    turns: decodeMessages(request),
    tools: [
      ...request.optionalList("tools").map(([tool], index) => decodeTool(tool, index)),
      ...decodeSearch(request.any("web_search_options")),
    ],
    toolChoice: choice.toolChoice,
    allowedTools: choice.allowedTools,
    parallelTools: request.optionalBoolean("parallel_tool_calls"),
    maxTokens: request.optionalCount(maxTokens),
    stop: decodeStop(request.any("stop")),
    ...decodePlainFields(request, "chat"),
    reasoning: decodeReasoning(request),
    format: format.format,
    stream: request.optionalBoolean("stream") ?? false,
    ...extrasOf({ ...request.rest(), ...choice.extras, ...format.extras }),
  });
}

/** Consecutive tool messages are one turn of the user; every other message is a turn of its own. */
function decodeMessages(request: Fields): Turn[] {
  const turns: Turn[] = [];
  let results: Turn | undefined;
  for (const [value, path] of request.list("messages")) {
    const message = Fields.at(value, path);
    if (message.object.role !== "tool") {
      results = undefined;
      turns.push(decodeMessage(message));
    } else if (results) results.parts.push(decodeResult(message));
    else {
      results = { role: "user", parts: [decodeResult(message)] };
      turns.push(results);
    }
  }
  return turns;
}

function decodeMessage(message: Fields): Turn {
  const word = message.text("role");
  const role = Object.hasOwn(roles, word) ? roles[word] : undefined;
  if (!role) {
    const param = message.pathOf("role");
    refuse(param, words`\`${param}\` is \`${quoted(word)}\`, which no message can have.`);
  }
  const parts = decodeContent(message);
  if (role === "assistant") {
    message.skip(...thinkingFields, "reasoning_opaque");
    parts.unshift(...decodeThinking(message.object));
    const refusal = message.optionalText("refusal");
    if (refusal) parts.push({ kind: "text", text: refusal, refusal: true });
    for (const [call, path] of message.optionalList("tool_calls")) parts.push(decodeCall(call, path));
  }
  const cache = cacheOf(message);
  const last = parts.at(-1);
  if (last) Object.assign(last, cache);
  return { role, parts, ...unreadExtras(message, {}, word === "developer" ? { role: word } : {}) };
}

function decodeReasoning(request: Fields): Reasoning | undefined {
  const effort = request.optionalText("reasoning_effort");
  const budget = request.optionalCount("thinking_budget");
  return effort === undefined && budget === undefined ? undefined : omitUndefined({ effort, budget });
}

/** `text` is the default; the upstream decides about an unknown format. */
function decodeFormat(value: unknown): { format?: ResponseFormat; extras?: JsonObject } {
  if (value == null) return {};
  const wire = Fields.at(value, "response_format");
  const type = wire.any("type");
  if (type === "text") return {};
  if (type === "json_object") return { format: {} };
  if (type !== "json_schema") return { extras: { response_format: wire.object } };
  const schema = wire.fields("json_schema");
  const format: ResponseFormat = omitUndefined({
    name: schema.optionalText("name"),
    description: schema.optionalText("description"),
    schema: schema.any("schema") ?? {},
    strict: schema.optionalBoolean("strict"),
  });
  return { format };
}

// ── Encode ──

/** Writes a request for an upstream of this dialect. */
export function encodeRequest(
  request: Conversation,
  model: ModelFacts,
  options: TranslationOptions = { webSearch: true },
): JsonObject {
  const { cache, notes = unnoted } = options;
  // Only OpenAI's models support `allowed_tools`.
  const conversation = isOpenAi(model) ? request : onlyAllowed(request);
  const { maxTokens, stop, stream } = conversation;
  const tools = encodeTools(conversation.tools, notes);
  const extras = encodeExtras(conversation, notes);
  const body = omitUndefined({
    ...extras,
    model: model.id,
    web_search_options: encodeSearch(conversation.tools),
    messages: conversation.turns.flatMap((turn) => encodeTurn(turn, model, notes)),
    tools: tools.length > 0 ? tools : undefined,
    ...encodeChoice(conversation, tools),
    [limitNameOf(model) ?? "max_completion_tokens"]: maxTokens,
    stop,
    ...encodePlainFields(conversation, "chat", notes),
    ...encodeReasoning(conversation, notes),
    response_format: encodeFormat(conversation),
    stream,
  });
  dropOverwritten(extras, body, notes);
  if (isOpenAi(model)) addCacheKey(body, cache, notes);
  return applyRules(body, model, options);
}

/** The conversation's extras that this dialect has. */
function encodeExtras({ extras, stream }: Conversation, notes: Notes): JsonObject {
  dropOthers({ extras }, ["anthropic", "google"], notes);
  const { stream_options, tool_choice: _, n, ...wire } = extras?.openai ?? {};
  refuseSeveral(n);
  for (const [key, value] of Object.entries(wire))
    if (responsesOnly.request.has(key)) {
      if (!isIgnorable("openai", key, value)) notes.addDropped(key);
      delete wire[key];
    }
  // Upstreams refuse `top_logprobs` without `logprobs`.
  if (wire.top_logprobs != null && wire.logprobs !== true) {
    notes.addDropped("top_logprobs");
    delete wire.top_logprobs;
  }
  return stream && stream_options !== undefined ? { ...wire, stream_options } : wire;
}

function encodeFormat({ format, extras }: Conversation): unknown {
  if (!format) return extras?.openai?.response_format;
  const { name, description, schema, strict } = format;
  if (schema === undefined) return { type: "json_object" };
  return { type: "json_schema", json_schema: omitUndefined({ name: name ?? "reply", description, schema, strict }) };
}

/** The effort and the budget as the client sent them; the rules adapt them to the model. */
function encodeReasoning({ reasoning }: Conversation, notes: Notes): JsonObject {
  if (reasoning?.summary !== undefined) notes.addDropped("summary");
  const { effort, budget, disabled } = reasoning ?? {};
  return { reasoning_effort: disabled ? "none" : effort, thinking_budget: disabled ? undefined : budget };
}

function encodeTurn(turn: Turn, model: ModelFacts, notes: Notes): JsonObject[] {
  return turn.role === "assistant" ? encodeAssistant(turn, model, notes) : encodeOther(turn, model, notes);
}

function encodeAssistant(turn: Turn, model: ModelFacts, notes: Notes): JsonObject[] {
  const refusals: LongText[] = [];
  const thoughts: string[] = [];
  const calls: JsonObject[] = [];
  const spoken: Part[] = [];
  let opaque: string | undefined;
  for (const part of turn.parts) {
    if (part.kind === "text" && part.refusal) refusals.push(part.text);
    else if (part.kind === "tool-call") calls.push(encodeCall(part, notes));
    else if (part.kind !== "thinking") spoken.push(part);
    else if (part.signature && part.signature.dialect !== "chat") notes.addDropped("thinking");
    else if (opaque === undefined || part.signature) {
      // A message has one signature, for its own thinking; only the thinking of the last signature is kept.
      if (opaque !== undefined) notes.addDropped("thinking");
      if (opaque !== undefined) thoughts.length = 0;
      thoughts.push(part.text);
      opaque = part.signature?.value;
    } else notes.addDropped("thinking");
  }
  const content = encodeContent(spoken, model, notes);
  // Few providers read thinking, and none is known to read a signature.
  const isReadable = !model.provider || (model.provider.thinking !== undefined && opaque === undefined);
  const readable = isReadable ? thoughts : [];
  if (!isReadable && thoughts.some((text) => text !== "")) notes.addDropped("thinking");
  const extras = ownExtras(turn, notes);
  // A turn that the client sent empty, or that has another provider's thinking only, is left out: OpenAI refuses
  // `content: null` without calls ("Invalid value for 'content': expected a string, got null").
  if (content.length + refusals.length + readable.length + calls.length + Object.keys(extras).length === 0) return [];
  const message = omitUndefined({
    ...extras,
    role: "assistant",
    content: content.length === 0 ? null : serialized(content, model),
    refusal: refusals.length > 0 ? joinTexts(refusals) : undefined,
    [model.provider?.thinking ?? "reasoning_text"]: readable.join("") || thoughtOfCalls(calls, model),
    reasoning_opaque: model.provider ? undefined : opaque,
    tool_calls: calls.length > 0 ? calls : undefined,
    ...encodeCache(turn.parts, model, notes),
  });
  return [message];
}

/**
 * In place of the thinking before a call that another model made, or that was made without any: DeepSeek refuses a call without
 * the field ("The `reasoning_content` in the thinking mode must be passed back to the API", NousResearch/hermes-agent#15353,
 * 2026-04), and Moonshot an empty one too (earendil-works/pi#4178, 2026-05).
 */
const thoughtOfCalls = (calls: JsonObject[], { provider }: ModelFacts): string | undefined =>
  provider?.thinking === "reasoning_content" && calls.length > 0 ? " " : undefined;

/** A turn of the system or the user. Tool results go first: they must directly follow their calls. */
function encodeOther(turn: Turn, model: ModelFacts, notes: Notes): JsonObject[] {
  const messages = turn.parts
    .filter((part) => part.kind === "tool-result")
    .map((part) => encodeResult(part, model, notes));
  const spoken = turn.parts.filter((part) => part.kind !== "tool-result");
  const content = encodeContent(spoken, model, notes);
  // A turn is omitted if all its parts were left out, but not if the client sent it empty.
  if (content.length === 0 && turn.parts.length > 0) return messages;
  const message = {
    ...ownExtras(turn, notes),
    role: turn.role,
    content: serialized(content, model),
    ...encodeCache(spoken, model, notes),
  };
  return [...messages, message];
}
