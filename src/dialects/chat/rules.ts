/**
 * What Copilot's chat endpoint refuses, and what is sent instead: one rule for each refusal, applied in this order to
 * passed-through and to translated requests alike. A rule that changes nothing keeps every object as it is.
 */

import { isObject, numberIn } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { wordId } from "../hub/ids";
import { filled, omitUndefined, textIn, without } from "../hub/json";
import { mapObjects } from "../hub/lists";
import type { ModelFacts } from "../hub/model";
import { budgetOf, effortOf } from "../hub/reasoning";
import { modelName, onList, type Rule, type RuleRow, requestRules, rulesNamed } from "../hub/rules";
import { allFixups, fitSchema, type SchemaFixup, vendorRow } from "../hub/tool-schema";
import { refuseSeveral, withProperties } from "../openai";
import { wireId } from "./calls";
import {
  moveToUser,
  repeatedCallIds,
  withAddedCacheMarks,
  withCacheMarks,
  withCallInputs,
  withContent,
  withFileNames,
  withoutForeignThinking,
  withSeenImages,
  withToolResults,
} from "./messages";
import { schemas, withWish } from "./schemas";

const limitNames = ["max_tokens", "max_completion_tokens"] as const;
/** Copilot is not known to accept these. */
const unsupported = ["store", "service_tier", "metadata"];

/** The rule that marks the prompt for clients that did not. */
const ownMarks = "cache-marks-added";

export const rules: Record<string, RuleRow> = {
  "one-answer": ["n", oneAnswer],
  "model-name": modelName,
  "max-tokens-name": [...limitNames, maxTokensName],
  "max-tokens-limit": [...limitNames, maxTokensLimit],
  reasoning: ["reasoning_effort", "thinking_budget", reasoning],
  sampling: ["temperature", "top_p", sampling],
  "stop-limit": ["stop", stop],
  "unsupported-fields": [...unsupported, unsupportedFields],
  "usage-asked": ["stream", usageAsked],
  "empty-tools": ["tools", emptyTools],
  ...silentRules(),
  "tool-schema": ["tools", toolSchema],
  "structured-output": ["response_format", structuredOutput],
  "developer-role": [
    "developer",
    onList("messages", (messages) =>
      mapObjects(messages, (message) => (message.role === "developer" ? { ...message, role: "system" } : message)),
    ),
  ],
  "file-name": ["file", onList("messages", (messages) => mapObjects(messages, withFileNames))],
  "image-type": [
    "image_url",
    onList("messages", (messages, model) => mapObjects(messages, (message) => withSeenImages(message, model))),
  ],
  "foreign-thinking": ["reasoning_opaque", onList("messages", withoutForeignThinking)],
  "call-input": [
    "tool_calls",
    onList("messages", (messages, model) => (isOpenAi(model) ? messages : mapObjects(messages, withCallInputs))),
  ],
  "call-ids": [
    "tool",
    "tool_calls",
    onList("messages", (messages, model) => mapObjects(messages, (message) => withWireIds(message, model))),
  ],
  "repeated-call-ids": ["tool_calls", onList("messages", repeatedCallIds)],
  "tool-results": ["tool", "tool_calls", onList("messages", withToolResults)],
  "tool-images": ["tool", onList("messages", (messages, model) => (isClaude(model) ? messages : moveToUser(messages)))],
  "cache-marks": ["cache_control", forClaude(onList("messages", withCacheMarks))],
  "empty-text": [
    onList("messages", (messages, model) => (isOpenAi(model) ? messages : mapObjects(messages, withContent))),
  ],
  "no-prefill": ["assistant", onList("messages", noPrefill)],
  [ownMarks]: [
    forClaude(
      onList("messages", (messages, _, { cache }) => (cache?.marks ? withAddedCacheMarks(messages) : messages)),
    ),
  ],
};

/** What a rule removed or added, for the client to know; rules without an entry change nothing for the client. */
const dropped: Record<string, (before: JsonObject, after: JsonObject) => string[]> = {
  "max-tokens-limit": (_, after) => [`max_tokens lowered to ${after.max_tokens ?? after.max_completion_tokens}`],
  reasoning: reasoningNotes,
  sampling: gone,
  "stop-limit": () => [`stop after the first ${stopLimit}`],
  "unsupported-fields": gone,
  "structured-output": () => ["response_format replaced by an instruction"],
  "image-type": () => ["image"],
  "tool-results": () => ["calls and results without each other"],
  "no-prefill": () => ["no-prefill"],
  "foreign-thinking": () => ["thinking"],
};

export const { applyRules, fixRequest } = requestRules({
  rules,
  dropped,
  noteTranslated(notes, rule) {
    if (rule === ownMarks) notes.addFixup(rule);
  },
  providerRules: rulesNamed(rules, ["model-name", "max-tokens-name", "usage-asked", "foreign-thinking", "call-ids"]),
});

/**
 * A message whose ids of calls are no longer than OpenAI takes them, and for Claude have its characters: those of Kimi, such as
 * `functions.look:0`, stay in the conversation with the next model (maximhq/bifrost#5097, 2026-07).
 */
function withWireIds(message: JsonObject, model: ModelFacts): JsonObject {
  const { tool_call_id: answered, tool_calls: calls } = message;
  const idFor = (id: string) => wireId(isClaude(model) ? wordId(id) : id);
  if (typeof answered === "string" && idFor(answered) !== answered)
    return { ...message, tool_call_id: idFor(answered) };
  if (!Array.isArray(calls)) return message;
  const renamed = mapObjects(calls, (call) =>
    typeof call.id === "string" && idFor(call.id) !== call.id ? { ...call, id: idFor(call.id) } : call,
  );
  return renamed === calls ? message : { ...message, tool_calls: renamed };
}

/** Removes thinking, which may be bound to the account that produced it. */
export function repairRequest(body: JsonObject, isForeign: (mark: string) => boolean): JsonObject {
  if (!Array.isArray(body.messages)) return body;
  const messages = mapObjects(body.messages, (message) => {
    const mark = textIn(message.reasoning_opaque ?? message.reasoning_text);
    return mark !== "" && isForeign(mark) ? without(message, ["reasoning_text", "reasoning_opaque"]) : message;
  });
  return messages === body.messages ? body : { ...body, messages };
}

export const isClaude = (model: ModelFacts) => model.vendor === "Anthropic";
export const isOpenAi = (model: ModelFacts) => model.vendor.includes("OpenAI");

// ── Members ──

/** The name of the output limit that a model knows; undefined if it is not known. */
export function limitNameOf(model: ModelFacts): (typeof limitNames)[number] | undefined {
  if (model.provider) return model.provider.maxTokens;
  // Newer OpenAI models refuse `max_tokens`; all other models do not know `max_completion_tokens`.
  return model.supports.completionTokens ? "max_completion_tokens" : "max_tokens";
}

function maxTokensName(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const name = limitNameOf(model);
  const other = name === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  if (name === undefined || !(other in body)) return undefined;
  return { [other]: undefined, [name]: body[name] ?? body[other] ?? undefined };
}

/** The output limits that a request asks for: one, once its name is a known one. */
const limitsIn = (body: JsonObject) =>
  limitNames.flatMap((name) => {
    const tokens = numberIn(body[name]);
    return tokens === undefined ? [] : [{ name, tokens }];
  });

/** Only OpenAI's models return several replies; others would silently return one. */
function oneAnswer({ n }: JsonObject, model: ModelFacts): undefined {
  if (!isOpenAi(model)) refuseSeveral(n);
}

function maxTokensLimit(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const { output = Number.POSITIVE_INFINITY, fullOutput = Number.POSITIVE_INFINITY } = model.limits;
  const limit = body.stream === true ? output : Math.min(output, fullOutput);
  const [asked] = limitsIn(body);
  return asked && asked.tokens > limit ? { [asked.name]: limit } : undefined;
}

/** Effort and budget: the requested one, or the other one if the model accepts only that. */
function reasoning(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const { reasoning_effort: effort, thinking_budget: budget } = body;
  if (effort === undefined && budget === undefined) return undefined;
  const wanted = omitUndefined({
    effort: typeof effort === "string" ? effort : undefined,
    budget: numberIn(budget),
  });
  const [limit] = limitsIn(body);
  const possible = { effort: effortOf(wanted, model), budget: budgetOf(wanted, model, limit?.tokens) };
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
    // Nothing is lost if the other field replaces it, or if it was `none`.
    return after.reasoning_effort === after.thinking_budget && before[field] !== "none" ? [field] : [];
  });
}

/** Some models accept no sampling parameters, Claude either `temperature` or `top_p`. */
function sampling(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const given = ["temperature", "top_p"].filter((field) => body[field] != null);
  if (model.supports.fixedSampling) return removed(given);
  return isClaude(model) && given.length === 2 ? { top_p: undefined } : undefined;
}

/** Maximum number of stop sequences with OpenAI. */
const stopLimit = 4;

function stop(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const tooMany = isOpenAi(model) && Array.isArray(body.stop) && body.stop.length > stopLimit;
  return tooMany && Array.isArray(body.stop) ? { stop: body.stop.slice(0, stopLimit) } : undefined;
}

function unsupportedFields(body: JsonObject): JsonObject | undefined {
  return removed(unsupported.filter((field) => field in body));
}

/** Without `include_usage` a stream may end without usage. */
function usageAsked(body: JsonObject): JsonObject | undefined {
  const options = isObject(body.stream_options) ? body.stream_options : {};
  if (body.stream !== true || options.include_usage === true) return undefined;
  return { stream_options: { ...options, include_usage: true } };
}

/** "[] is too short - 'tools'": some clients send an empty list; the fields that depend on it go as well. */
function emptyTools({ tools, tool_choice: choice, parallel_tool_calls }: JsonObject): JsonObject | undefined {
  if (!Array.isArray(tools) || tools.length > 0) return undefined;
  return {
    tools: undefined,
    ...(choice === "auto" || choice === "none" || choice === null ? { tool_choice: undefined } : {}),
    ...(parallel_tool_calls === undefined ? {} : { parallel_tool_calls: undefined }),
  };
}

function toolSchema(body: JsonObject): JsonObject | undefined {
  if (!Array.isArray(body.tools)) return undefined;
  const tools = mapObjects(body.tools, (tool) => {
    const definition = tool.function;
    if (tool.type !== "function" || !isObject(definition)) return tool;
    const schema = definition.parameters ?? { type: "object" };
    const parameters = withProperties(schema);
    return parameters === schema ? tool : { ...tool, function: { ...definition, parameters } };
  });
  return tools === body.tools ? undefined : { tools };
}

/** One rule for each fixup of schemas that some vendor needs without saying so. */
function silentRules(): Record<string, RuleRow> {
  const ruleOf =
    (name: SchemaFixup): Rule =>
    (body, model) => {
      const isNeeded =
        vendorRow("chat", model.vendor).isSilent && vendorRow("chat", model.vendor).fixups.includes(name);
      if (!isNeeded) return undefined;
      return schemas.mapFunctions(body, (offered) => {
        const schema = isObject(offered.schema) ? fitSchema(offered.schema, [name]).schema : offered.schema;
        return schema === offered.schema ? offered : { ...offered, schema };
      });
    };
  return Object.fromEntries(allFixups.map((name) => [name, ["tools", ruleOf(name)]]));
}

/** Keeps the schema if the model supports structured outputs; otherwise asks for it in a system message. */
function structuredOutput(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const format = body.response_format;
  const isJson = isObject(format) && (format.type === "json_schema" || format.type === "json_object");
  if (!isJson || model.supports.structuredOutputs || !Array.isArray(body.messages)) return undefined;
  const schema = isObject(format.json_schema) ? format.json_schema.schema : undefined;
  return { response_format: undefined, messages: withWish(body.messages, schema) };
}

// ── Messages ──

function forClaude(rule: Rule): Rule {
  return (body, model, options) => (isClaude(model) ? rule(body, model, options) : undefined);
}

/** Claude refuses a conversation that ends with an assistant message. */
function noPrefill(messages: unknown[], model: ModelFacts): unknown[] {
  const last = messages.at(-1);
  const isPrefill = isObject(last) && last.role === "assistant" && isClaude(model);
  return isPrefill ? [...messages, { role: "user", content: "Please continue." }] : messages;
}

// ── Changes ──

const removed = (fields: string[]): JsonObject | undefined =>
  filled(Object.fromEntries(fields.map((field) => [field, undefined])));

/** The names of the fields that had a value and are gone. */
function gone(before: JsonObject, after: JsonObject): string[] {
  return Object.keys(before).filter((key) => before[key] != null && after[key] === undefined);
}
