/** Chat completion requests: a list of messages. */

import { ProxyError } from "../../errors";
import { numberIn } from "../../json";
import { joinTexts, type LongText } from "../../net/json-skeleton";
import type { EncodedRequest, TranslationOptions } from "../codec";
import { asChatExtras } from "../hub/chat-extras";
import type { Conversation, JsonObject, Part, Reasoning, ResponseFormat, Turn } from "../hub/conversation";
import { dropOthers, dropOverwritten, ignorableFields } from "../hub/ignorable-fields";
import {
  arrayAt,
  filledAt,
  listAt,
  objectAt,
  omit,
  omitUndefined,
  optionalBoolean,
  optionalCount,
  optionalNumber,
  optionalText,
  textAt,
} from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { decodeSampling, encodeSampling } from "../hub/sampling";
import { onlyAllowed } from "../hub/tools";
import { addCacheKey, decodeStop, extrasOf, roles } from "../openai";
import { asChatRequest } from "../other-api";
import { cacheOf, ownExtras, responsesOnly } from "./extras";
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
import { applyRules, isOpenAi, limitNameOf, ownMarks } from "./rules";
import { decodeSearch, encodeSearch } from "./server-tools";
import { thinkingFields } from "./thinking";
import { decodeChoice, decodeTool, encodeChoice, encodeTools } from "./tools";

// ── Wire facts ──

/** The fields that are read into the hub; all others are kept as extras. */
const knownFields = {
  request: new Set([
    ...["model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens"],
    ...["stop", "temperature", "top_p", "seed", "presence_penalty", "frequency_penalty"],
    ...["reasoning_effort", "thinking_budget", "response_format", "stream", "web_search_options"],
  ]),
  message: new Set(["role", "content", "cache_control", "copilot_cache_control"]),
  assistant: new Set([
    ...["role", "content", "refusal", "reasoning_opaque", "tool_calls", ...thinkingFields],
    ...["cache_control", "copilot_cache_control"],
  ]),
};

/** The sampling parameters that this dialect has. */
const ownSampling = ["seed", "presencePenalty", "frequencyPenalty"] as const;

// ── Decode ──

/** @throws ProxyError `invalid_request` if there is no message. */
export function checkRequest({ messages }: JsonObject): void {
  filledAt(messages, "messages");
}

/** Reads a request. */
export function decodeRequest(body: unknown): Conversation {
  const request = asChatRequest(objectAt(body, "body"));
  for (const param of ["functions", "function_call"])
    if (request[param] != null)
      throw new ProxyError("invalid_request", `\`${param}\` is not supported; send \`tools\` and \`tool_choice\`.`, {
        param,
      });
  const maxTokens = request.max_completion_tokens == null ? "max_tokens" : "max_completion_tokens";
  const choice = decodeChoice(request.tool_choice);
  const format = decodeFormat(request.response_format);
  return omitUndefined({
    model: textAt(request.model, "model"),
    turns: decodeMessages(arrayAt(request.messages, "messages")),
    tools: [...listAt(request.tools, "tools").map(decodeTool), ...decodeSearch(request.web_search_options)],
    toolChoice: choice.toolChoice,
    allowedTools: choice.allowedTools,
    parallelTools: optionalBoolean(request.parallel_tool_calls, "parallel_tool_calls"),
    maxTokens: optionalCount(request[maxTokens], maxTokens),
    stop: decodeStop(request.stop),
    temperature: optionalNumber(request.temperature, "temperature"),
    topP: optionalNumber(request.top_p, "top_p"),
    sampling: decodeSampling(request, ownSampling),
    reasoning: decodeReasoning(request),
    format: format.format,
    stream: optionalBoolean(request.stream, "stream") ?? false,
    ...extrasOf({ ...omit(request, knownFields.request), ...choice.extras, ...format.extras }),
  });
}

/** Consecutive tool messages are one turn of the user; every other message is a turn of its own. */
function decodeMessages(messages: unknown[]): Turn[] {
  const turns: Turn[] = [];
  let results: Turn | undefined;
  messages.forEach((value, index) => {
    const path = `messages[${index}]`;
    const message = objectAt(value, path);
    if (message.role !== "tool") {
      results = undefined;
      turns.push(decodeMessage(message, path));
    } else if (results) results.parts.push(decodeResult(message, path));
    else {
      results = { role: "user", parts: [decodeResult(message, path)] };
      turns.push(results);
    }
  });
  return turns;
}

function decodeMessage(message: JsonObject, path: string): Turn {
  const word = textAt(message.role, `${path}.role`);
  const role = Object.hasOwn(roles, word) ? roles[word] : undefined;
  if (!role)
    throw new ProxyError("invalid_request", `\`${path}.role\` is \`${word}\`, which no message can have.`, {
      param: `${path}.role`,
    });
  const parts = decodeContent(message.content, `${path}.content`);
  if (role === "assistant") {
    parts.unshift(...decodeThinking(message));
    const refusal = optionalText(message.refusal, `${path}.refusal`);
    if (refusal) parts.push({ kind: "text", text: refusal, refusal: true });
    if (message.tool_calls != null)
      arrayAt(message.tool_calls, `${path}.tool_calls`).forEach((call, index) => {
        parts.push(decodeCall(objectAt(call, `${path}.tool_calls[${index}]`), `${path}.tool_calls[${index}]`));
      });
  }
  const last = parts.at(-1);
  if (last) Object.assign(last, cacheOf(message));
  const extras = omit(message, role === "assistant" ? knownFields.assistant : knownFields.message);
  return { role, parts, ...extrasOf({ ...asChatExtras(extras), ...(word === "developer" ? { role: word } : {}) }) };
}

function decodeReasoning({ reasoning_effort, thinking_budget }: JsonObject): Reasoning | undefined {
  const effort = optionalText(reasoning_effort, "reasoning_effort");
  const budget = optionalCount(thinking_budget, "thinking_budget");
  return effort === undefined && budget === undefined ? undefined : omitUndefined({ effort, budget });
}

/** `text` is the default; the upstream decides about an unknown format. */
function decodeFormat(value: unknown): { format?: ResponseFormat; extras?: JsonObject } {
  if (value == null) return {};
  const wire = objectAt(value, "response_format");
  if (wire.type === "text") return {};
  if (wire.type === "json_object") return { format: {} };
  if (wire.type !== "json_schema") return { extras: { response_format: wire } };
  const path = "response_format.json_schema";
  const schema = objectAt(wire.json_schema, path);
  const format: ResponseFormat = omitUndefined({
    name: optionalText(schema.name, `${path}.name`),
    description: optionalText(schema.description, `${path}.description`),
    schema: schema.schema ?? {},
    strict: optionalBoolean(schema.strict, `${path}.strict`),
  });
  return { format };
}

// ── Encode ──

/** Writes a request for an upstream of this dialect. */
export function encodeRequest(request: Conversation, model: ModelFacts, options?: TranslationOptions): EncodedRequest {
  const dropped = new Set<string>();
  // Only OpenAI's models support `allowed_tools`.
  const conversation = isOpenAi(model) ? request : onlyAllowed(request);
  const { maxTokens, stop, temperature, topP, stream } = conversation;
  const tools = encodeTools(conversation.tools, dropped);
  const extras = encodeExtras(conversation, dropped);
  const body = omitUndefined({
    ...extras,
    model: model.id,
    web_search_options: encodeSearch(conversation.tools),
    messages: conversation.turns.flatMap((turn) => encodeTurn(turn, model, dropped)),
    tools: tools.length > 0 ? tools : undefined,
    ...encodeChoice(conversation, tools),
    [limitNameOf(model) ?? "max_completion_tokens"]: maxTokens,
    stop,
    temperature,
    top_p: topP,
    ...encodeSampling(conversation, ownSampling, dropped),
    ...encodeReasoning(conversation, dropped),
    response_format: encodeFormat(conversation),
    stream,
  });
  dropOverwritten(extras, body, dropped);

  const fixups = isOpenAi(model) ? addCacheKey(body, options?.cache) : [];
  const ruled = applyRules(body, model, options);
  for (const note of ruled.dropped) dropped.add(note);
  if (ruled.fixups.includes(ownMarks)) fixups.push(ownMarks);
  return { body: ruled.body, dropped: [...dropped], fixups };
}

/** The conversation's extras that this dialect has. */
function encodeExtras({ extras, stream }: Conversation, dropped: Set<string>): JsonObject {
  dropOthers({ extras }, ["anthropic", "google"], dropped);
  const { stream_options, tool_choice: _, n, ...wire } = extras?.openai ?? {};
  if ((numberIn(n) ?? 1) > 1)
    throw new ProxyError("invalid_request", "`n` must be 1: only one answer at a time can be translated.", {
      param: "n",
    });
  for (const key of Object.keys(wire))
    if (responsesOnly.request.has(key)) {
      if (!ignorableFields.openai.has(key)) dropped.add(key);
      delete wire[key];
    }
  // Upstreams refuse `top_logprobs` without `logprobs`.
  if (wire.top_logprobs != null && wire.logprobs !== true) {
    dropped.add("top_logprobs");
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

/** As it was requested; the rules adapt it to the model. */
function encodeReasoning({ reasoning }: Conversation, dropped: Set<string>): JsonObject {
  if (reasoning?.summary !== undefined) dropped.add("summary");
  const { effort, budget, disabled } = reasoning ?? {};
  return { reasoning_effort: disabled ? "none" : effort, thinking_budget: disabled ? undefined : budget };
}

function encodeTurn(turn: Turn, model: ModelFacts, dropped: Set<string>): JsonObject[] {
  return turn.role === "assistant" ? encodeAssistant(turn, model, dropped) : encodeOther(turn, model, dropped);
}

function encodeAssistant(turn: Turn, model: ModelFacts, dropped: Set<string>): JsonObject[] {
  const refusals: LongText[] = [];
  let thoughts: string[] = [];
  const calls: JsonObject[] = [];
  const spoken: Part[] = [];
  let opaque: string | undefined;
  for (const part of turn.parts) {
    if (part.kind === "text" && part.refusal) refusals.push(part.text);
    else if (part.kind === "tool-call") calls.push(encodeCall(part, dropped));
    else if (part.kind !== "thinking") spoken.push(part);
    else if (part.signature && part.signature.dialect !== "chat") dropped.add("thinking");
    else if (opaque === undefined || part.signature) {
      // A message has one signature, for its own thinking; only the thinking of the last signature is kept.
      if (opaque !== undefined) dropped.add("thinking");
      thoughts = opaque === undefined ? [...thoughts, part.text] : [part.text];
      opaque = part.signature?.value;
    } else dropped.add("thinking");
  }
  const content = encodeContent(spoken, model, dropped);
  // Few providers read thinking, and none is known to read a signature.
  const isReadable = !model.provider || (model.provider.thinking !== undefined && opaque === undefined);
  const readable = isReadable ? thoughts : [];
  if (!isReadable && thoughts.some((text) => text !== "")) dropped.add("thinking");
  const extras = ownExtras(turn, dropped);
  // Left out is a turn that the client sent empty, and one of another provider's thinking only: OpenAI refuses
  // `content: null` without calls ("Invalid value for 'content': expected a string, got null").
  if (content.length + refusals.length + readable.length + calls.length + Object.keys(extras).length === 0) return [];
  const message = omitUndefined({
    ...extras,
    role: "assistant",
    content: content.length === 0 ? null : serialized(content, model),
    refusal: refusals.length > 0 ? joinTexts(...refusals) : undefined,
    [model.provider?.thinking ?? "reasoning_text"]: readable.join("") || undefined,
    reasoning_opaque: model.provider ? undefined : opaque,
    tool_calls: calls.length > 0 ? calls : undefined,
    ...encodeCache(turn.parts, model, dropped),
  });
  return [message];
}

/** A turn of the system or the user. Tool results go first: they must directly follow their calls. */
function encodeOther(turn: Turn, model: ModelFacts, dropped: Set<string>): JsonObject[] {
  const messages = turn.parts
    .filter((part) => part.kind === "tool-result")
    .map((part) => encodeResult(part, model, dropped));
  const spoken = turn.parts.filter((part) => part.kind !== "tool-result");
  const content = encodeContent(spoken, model, dropped);
  // A turn is omitted if all its parts were left out, but not if the client sent it empty.
  if (content.length === 0 && turn.parts.length > 0) return messages;
  // Few providers know the newer role.
  const isDeveloper = !model.provider && turn.role === "system" && turn.extras?.openai?.role === "developer";
  const message = {
    ...ownExtras(turn, dropped),
    role: isDeveloper ? "developer" : turn.role,
    content: serialized(content, model),
    ...encodeCache(spoken, model, dropped),
  };
  return [...messages, message];
}
