/**
 * What Copilot's chat endpoint refuses, and what is sent instead: one rule a refusal, in this order, for a client's own
 * request and for one that comes out of the hub alike. A rule with nothing to do leaves every object as it is.
 */

import { ProxyError } from "../../errors";
import { isObject, numberIn } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { omitUndefined } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { budgetOf, effortOf } from "../hub/reasoning";
import { applyInOrder, type Rule } from "../hub/rules";
import { type FittedWire, fitWire } from "../hub/tools";
import {
  mapObjects,
  moveToUser,
  withCacheMarks,
  withContent,
  withoutForeignThinking,
  withToolResults,
} from "./messages";

type ModelRule = Rule<[model: ModelFacts]>;

const rules: Record<string, ModelRule> = {
  "one-answer": oneAnswer,
  "model-name": (body, model) => (body.model === model.id ? undefined : { model: model.id }),
  "max-tokens-name": maxTokensName,
  "max-tokens-limit": maxTokensLimit,
  reasoning,
  sampling,
  "stop-limit": stop,
  "unsupported-fields": unsupportedFields,
  "usage-asked": usageAsked,
  "empty-tools": emptyTools,
  "tool-schema": toolSchema,
  "structured-output": structuredOutput,
  "developer-role": onMessages((messages) =>
    mapObjects(messages, (message) => (message.role === "developer" ? { ...message, role: "system" } : message)),
  ),
  "foreign-thinking": onMessages(withoutForeignThinking),
  "tool-results": onMessages(withToolResults),
  "tool-images": onMessages((messages, model) => (isClaude(model) ? messages : moveToUser(messages))),
  "cache-marks": onMessages((messages, model) => (isClaude(model) ? withCacheMarks(messages) : messages)),
  "empty-text": onMessages((messages, model) => (isClaude(model) ? mapObjects(messages, withContent) : messages)),
  "no-prefill": onMessages(noPrefill),
};

/** What a rule took from who asked, or added; the others change nothing for him. */
const notes: Record<string, (before: JsonObject, after: JsonObject) => string[]> = {
  "max-tokens-limit": (_, after) => [`max_tokens lowered to ${after.max_tokens ?? after.max_completion_tokens}`],
  reasoning: reasoningNotes,
  sampling: gone,
  "stop-limit": () => [`stop after the first ${stopLimit}`],
  "unsupported-fields": gone,
  "structured-output": () => ["response_format asked for in words"],
  "tool-results": () => ["calls and results without each other"],
  "no-prefill": () => ["no-prefill"],
  "foreign-thinking": () => ["thinking"],
};

export const applyRules = applyInOrder(rules, notes);

/** The request without thinking, which may be bound to the account it was done for. */
export function repairRequest(body: JsonObject): JsonObject {
  if (!Array.isArray(body.messages)) return body;
  const messages = mapObjects(body.messages, ({ reasoning_text, reasoning_opaque, ...message }) => message);
  return { ...body, messages };
}

/** Tools whose schemas are not refused. */
export const repairTools = (body: JsonObject): FittedWire | undefined =>
  fitWire("chat", (fit) => {
    if (!Array.isArray(body.tools)) return undefined;
    const tools = mapObjects(body.tools, (tool) => {
      const definition = isObject(tool.function) ? tool.function : {};
      const parameters = fit(definition.parameters);
      return parameters === definition.parameters ? tool : { ...tool, function: { ...definition, parameters } };
    });
    return tools === body.tools ? undefined : { tools };
  });

export const isClaude = (model: ModelFacts) => model.vendor === "Anthropic";
export const isOpenAi = (model: ModelFacts) => model.vendor.includes("OpenAI");

// ── Members ──

const limitNames = ["max_tokens", "max_completion_tokens"] as const;

/** The newer OpenAI models refuse `max_tokens`, everybody else's do not know its successor. */
function maxTokensName(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const isNewer = isOpenAi(model) && /^(gpt-5|o\d)/.test(model.id);
  const [other, name] = isNewer ? limitNames : limitNames.toReversed();
  if (other === undefined || name === undefined || !(other in body)) return undefined;
  return { [other]: undefined, [name]: body[name] ?? body[other] ?? undefined };
}

/** Only OpenAI's models give several answers; the others would give one without a word. */
function oneAnswer({ n }: JsonObject, model: ModelFacts): undefined {
  if ((numberIn(n) ?? 1) <= 1 || isOpenAi(model)) return undefined;
  throw new ProxyError("invalid_request", "`n` must be 1: this model gives one answer at a time.", { param: "n" });
}

function maxTokensLimit(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const { output = Number.POSITIVE_INFINITY, fullOutput = Number.POSITIVE_INFINITY } = model.limits;
  const limit = body.stream === true ? output : Math.min(output, fullOutput);
  const name = limitNames.find((field) => numberIn(body[field]) !== undefined);
  return name !== undefined && (numberIn(body[name]) ?? 0) > limit ? { [name]: limit } : undefined;
}

/** An effort or a budget, as it was said; the other one where the model takes only that. */
function reasoning(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const { reasoning_effort: effort, thinking_budget: budget } = body;
  if (effort === undefined && budget === undefined) return undefined;
  const wanted = omitUndefined({
    effort: typeof effort === "string" ? effort : undefined,
    budget: numberIn(budget),
  });
  const maxTokens = limitNames.map((name) => numberIn(body[name])).find((limit) => limit !== undefined);
  const possible = { effort: effortOf(wanted, model), budget: budgetOf(wanted, model, maxTokens) };
  const saysBudget = wanted.budget !== undefined && possible.budget !== undefined;
  const saysEffort = possible.effort !== undefined && (wanted.effort !== undefined || !saysBudget);
  const changes: JsonObject = {};
  const effortSent = saysEffort ? possible.effort : undefined;
  const budgetSent = saysBudget || !saysEffort ? possible.budget : undefined;
  if (effortSent !== wanted.effort) changes.reasoning_effort = effortSent;
  if (budgetSent !== wanted.budget) changes.thinking_budget = budgetSent;
  return filled(changes);
}

function reasoningNotes(before: JsonObject, after: JsonObject): string[] {
  return ["reasoning_effort", "thinking_budget"].flatMap((field) => {
    if (before[field] == null || before[field] === after[field]) return [];
    if (after[field] !== undefined) return [`${field} ${before[field]} changed to ${after[field]}`];
    // Nothing is lost when the other one says it, or when it said "do not".
    return after.reasoning_effort === after.thinking_budget && before[field] !== "none" ? [field] : [];
  });
}

/** OpenAI's o-series takes no sampling, Claude a temperature or a top_p. */
function sampling(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const given = ["temperature", "top_p"].filter((field) => body[field] != null);
  if (isOpenAi(model) && /^o\d/.test(model.id)) return removed(given);
  return isClaude(model) && given.length === 2 ? { top_p: undefined } : undefined;
}

/** The most stop sequences OpenAI takes. */
const stopLimit = 4;

function stop(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const tooMany = isOpenAi(model) && Array.isArray(body.stop) && body.stop.length > stopLimit;
  return tooMany && Array.isArray(body.stop) ? { stop: body.stop.slice(0, stopLimit) } : undefined;
}

/** Nobody has seen Copilot take these. */
function unsupportedFields(body: JsonObject): JsonObject | undefined {
  return removed(["store", "service_tier", "metadata"].filter((field) => field in body));
}

/** Without being asked, a stream may end without a word of what it cost. */
function usageAsked(body: JsonObject): JsonObject | undefined {
  const options = isObject(body.stream_options) ? body.stream_options : {};
  if (body.stream !== true || options.include_usage === true) return undefined;
  return { stream_options: { ...options, include_usage: true } };
}

/** "[] is too short - 'tools'": clients that have none send it; what would say how to use them goes along. */
function emptyTools({ tools, tool_choice: choice, parallel_tool_calls }: JsonObject): JsonObject | undefined {
  if (!Array.isArray(tools) || tools.length > 0) return undefined;
  return {
    tools: undefined,
    ...(choice === "auto" || choice === "none" || choice === null ? { tool_choice: undefined } : {}),
    ...(parallel_tool_calls === undefined ? {} : { parallel_tool_calls: undefined }),
  };
}

/** OpenAI refuses an object's schema that names no properties. */
function toolSchema(body: JsonObject): JsonObject | undefined {
  if (!Array.isArray(body.tools)) return undefined;
  const tools = mapObjects(body.tools, (tool) => {
    const definition = tool.function;
    if (tool.type !== "function" || !isObject(definition)) return tool;
    const schema = definition.parameters ?? { type: "object" };
    if (!isObject(schema) || schema.type !== "object" || "properties" in schema) return tool;
    return { ...tool, function: { ...definition, parameters: { ...schema, properties: {} } } };
  });
  return tools === body.tools ? undefined : { tools };
}

/** JSON of a schema where the model can be held to it; else it is asked for in words. */
function structuredOutput(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const format = body.response_format;
  const isJson = isObject(format) && (format.type === "json_schema" || format.type === "json_object");
  if (!isJson || model.supports.structuredOutputs || !Array.isArray(body.messages)) return undefined;
  const schema = isObject(format.json_schema) ? format.json_schema.schema : undefined;
  const object = schema ? ` that matches this JSON Schema: ${JSON.stringify(schema)}` : ".";
  const content = `Answer without a code fence and with nothing but one JSON object${object}`;
  const after = body.messages.findIndex((message) => !isObject(message) || message.role !== "system");
  const messages = body.messages.toSpliced(after === -1 ? body.messages.length : after, 0, { role: "system", content });
  return { response_format: undefined, messages };
}

// ── Messages ──

function onMessages(change: (messages: unknown[], model: ModelFacts) => unknown[]): ModelRule {
  return (body, model) => {
    if (!Array.isArray(body.messages)) return undefined;
    const messages = change(body.messages, model);
    return messages === body.messages ? undefined : { messages };
  };
}

/** Claude does not go on with words that are put into its mouth. */
function noPrefill(messages: unknown[], model: ModelFacts): unknown[] {
  const last = messages.at(-1);
  const isPrefill = isObject(last) && last.role === "assistant" && isClaude(model);
  return isPrefill ? [...messages, { role: "user", content: "Please continue." }] : messages;
}

// ── Changes ──

const removed = (fields: string[]): JsonObject | undefined =>
  fields.length === 0 ? undefined : Object.fromEntries(fields.map((field) => [field, undefined]));

const filled = (changes: JsonObject): JsonObject | undefined => (Object.keys(changes).length > 0 ? changes : undefined);

/** The members that were there, and said something. */
function gone(before: JsonObject, after: JsonObject): string[] {
  return Object.keys(before).filter((key) => before[key] != null && after[key] === undefined);
}
