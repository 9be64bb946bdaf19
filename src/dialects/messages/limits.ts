/** Rules about limits: cache marks, tokens, thinking, effort and structured output. */
import { isObject, numberIn } from "../../lib/json";
import type { TranslationOptions } from "../codec";
import type { JsonObject } from "../hub/conversation";
import { filled, omitUndefined, without } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { closedSchema, wishForJson } from "../hub/output-schema";
import { budgetOf, effortOf } from "../hub/reasoning";
import type { RuleRow } from "../hub/rules";
import { isRefused } from "./betas";
import { asReminder } from "./history-rules";
import { blocksOf, eachBlock, eachMark, isThinking, objectsIn, textBlock } from "./traverse";

/** The rule that puts the schema of a reply into Anthropic's form, in which it says the same. */
export const ownForm = "output-schema";

/** Applied in this order, after the rules about the history. */
export const limitRules: Record<string, RuleRow> = {
  "cache-top-level": ["cache_control", cacheTopLevel],
  "cache-scope": ["cache_control", (body) => eachMark(body, (holder) => controlWithout(holder, "scope"))],
  "cache-ttl": ["cache_control", cacheTtl],
  "cache-limit": ["cache_control", cacheLimit],
  "max-tokens": [maxTokens],
  "max-tokens-limit": ["max_tokens", maxTokensLimit],
  "thinking-type": ["thinking", thinkingType],
  "thinking-display": ["thinking", thinkingDisplay],
  "always-thinks": [alwaysThinks],
  "forced-choice": ["tool_choice", forcedChoice],
  "tool-choice-with-thinking": ["thinking", toolChoiceWithThinking],
  "thinking-adaptive": ["thinking", thinkingAdaptive],
  "thinking-shown": ["thinking", thinkingShown],
  "thinking-in-tool-loop": ["thinking", thinkingInToolLoop],
  "thinking-budget": ["thinking", thinkingBudget],
  "clear-thinking": ["context_management", clearThinking],
  "context-editing": ["context_management", contextManagement],
  effort: ["output_config", effort],
  [ownForm]: ["output_config", "output_format", outputSchema],
  "structured-output": ["output_config", "output_format", structuredOutput],
  sampling: ["temperature", "top_p", "top_k", sampling],
};

/** A cache mark on the whole request moves to its last block. */
function cacheTopLevel(body: JsonObject): JsonObject | undefined {
  if (body.cache_control === undefined) return undefined;
  const messages = objectsIn(body.messages);
  const last = messages.at(-1);
  const content = blocksOf(last?.content);
  const block = content.at(-1);
  if (!last || !block || block.cache_control || isThinking(block) || !isObject(body.cache_control))
    return { cache_control: undefined };
  const marked = [...content.slice(0, -1), { ...block, cache_control: body.cache_control }];
  return { cache_control: undefined, messages: [...messages.slice(0, -1), { ...last, content: marked }] };
}

/** "cache_control may not be specified within `tool_result.content`": it moves to the result. */
export function cacheInToolResult(body: JsonObject): JsonObject | undefined {
  return eachBlock(body, (block) => {
    const inner = block.type === "tool_result" ? objectsIn(block.content) : [];
    const mark = inner.findLast(({ cache_control }) => cache_control)?.cache_control;
    if (!mark) return block;
    const content = inner.map((block) => without(block, ["cache_control"]));
    return { ...block, content, cache_control: block.cache_control ?? mark };
  });
}

export function cacheOnThinking(body: JsonObject): JsonObject | undefined {
  return eachBlock(body, (block) => (isThinking(block) ? without(block, ["cache_control"]) : block));
}

function controlWithout(holder: JsonObject, key: string): JsonObject {
  const control = holder.cache_control;
  return isObject(control) && key in control ? { ...holder, cache_control: without(control, [key]) } : holder;
}

/** A lifetime needs a beta and costs more to write, so only an hour is asked for, and only if the owner wants that. */
function cacheTtl(body: JsonObject, _: ModelFacts, options: TranslationOptions): JsonObject | undefined {
  const hourCache = options.hourCache && !isRefused("cache_control.ttl", options);
  return eachMark(body, (holder) => {
    const isHour = isObject(holder.cache_control) && holder.cache_control.ttl === "1h";
    return hourCache && isHour ? holder : controlWithout(holder, "ttl");
  });
}

export const maxCacheMarks = 4;

/** Keeps the last cache marks where there are too many: they cover most of the prompt. */
function cacheLimit(body: JsonObject): JsonObject | undefined {
  let marks = 0;
  eachMark(body, (holder) => {
    marks++;
    return holder;
  });
  if (marks <= maxCacheMarks) return undefined;
  return eachMark(body, (holder) => (marks-- > maxCacheMarks ? without(holder, ["cache_control"]) : holder));
}

function maxTokens(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  return body.max_tokens == null ? { max_tokens: model.limits.output ?? 8192 } : undefined;
}

function maxTokensLimit(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const limit = model.limits.output ?? Number.POSITIVE_INFINITY;
  return (numberIn(body.max_tokens) ?? 0) > limit ? { max_tokens: limit } : undefined;
}

/** A kind of thinking that the upstream does not know (`between_tools`, seen in clients from 2026-09 on) becomes adaptive. */
function thinkingType({ thinking }: JsonObject): JsonObject | undefined {
  if (!isObject(thinking) || typeof thinking.type !== "string" || thinkingTypes.has(thinking.type)) return undefined;
  return { thinking: { ...thinking, type: "adaptive" } };
}

const thinkingTypes = new Set(["enabled", "adaptive", "disabled"]);

/**
 * Another way to show thinking, such as `updates`, needs a beta of its own: the thinking is shown as a summary. That is how
 * thinking with a budget is always shown, and not every model with a budget knows the field.
 */
function thinkingDisplay({ thinking }: JsonObject): JsonObject | undefined {
  if (!isObject(thinking) || thinking.display === undefined || thinking.display === "omitted") return undefined;
  if (thinking.type === "enabled") return { thinking: without(thinking, ["display"]) };
  return thinking.display === "summarized" ? undefined : { thinking: { ...thinking, display: "summarized" } };
}

/**
 * From Claude 4.7 on, adaptive thinking is not shown unless the request asks for it (Anthropic's documentation, 2026-08):
 * the stream then stays silent for as long as the model thinks, and connections are cut for it.
 */
function thinkingShown({ thinking }: JsonObject): JsonObject | undefined {
  if (!isObject(thinking) || thinking.type !== "adaptive" || thinking.display !== undefined) return undefined;
  return { thinking: { ...thinking, display: "summarized" } };
}

/** What asks for thinking, and to see it. */
const shownThinking = { type: "adaptive", display: "summarized" };

/** A model that always thinks refuses a request that does not ask for it: who wants no thinking gets as little as there is. */
function alwaysThinks(body: JsonObject, { supports }: ModelFacts): JsonObject | undefined {
  if (!supports.alwaysThinks || thinks(body)) return undefined;
  const config = isObject(body.output_config) ? body.output_config : {};
  const isUnwanted = isObject(body.thinking) && body.thinking.type === "disabled" && config.effort == null;
  return { thinking: shownThinking, ...(isUnwanted ? { output_config: { ...config, effort: "low" } } : {}) };
}

/** The choice that forces a call, if the request has one. */
const forcedIn = ({ tool_choice: choice }: JsonObject): JsonObject | undefined =>
  isObject(choice) && (choice.type === "any" || choice.type === "tool") ? choice : undefined;

function forcedChoice(body: JsonObject, { supports }: ModelFacts): JsonObject | undefined {
  return supports.noForcedCalls ? withFreeChoice(body) : undefined;
}

/**
 * The request with words in place of a forced call; undefined if it forces none. They stand at its end: a system prompt that
 * changes from turn to turn costs the prompt's cache, and the thinking that is bound to what came before it.
 */
export function withFreeChoice(body: JsonObject): JsonObject | undefined {
  const choice = forcedIn(body);
  if (!choice) return undefined;
  const { type, name, ...others } = choice;
  const which = type === "tool" ? `the tool \`${String(name)}\`` : "one of the tools";
  const words = textBlock(`Answer with a call of ${which}, and with nothing else.`);
  const messages = objectsIn(body.messages);
  const last = messages.at(-1);
  const said = last?.role === "user" ? blocksOf(last.content) : [];
  return {
    tool_choice: { ...others, type: "auto" },
    ...(said.length > 0
      ? { messages: [...messages.slice(0, -1), { ...last, content: [...said, asReminder(words)] }] }
      : { system: [...blocksOf(body.system), words] }),
  };
}

/** Most models cannot think where a call is forced; the call takes precedence. */
function toolChoiceWithThinking(body: JsonObject, { supports }: ModelFacts): JsonObject | undefined {
  if (!thinks(body) || !forcedIn(body)) return undefined;
  const isAdaptive = supports.adaptiveThinking && !supports.thinkingBudget;
  return supports.forcedCallsThink && isAdaptive ? undefined : { thinking: undefined };
}

/**
 * With a thinking budget, the current assistant turn must begin with thinking: "Expected `thinking` or
 * `redacted_thinking`, but found `tool_use`". If it does not, thinking is disabled for this request.
 */
export function thinkingInToolLoop(body: JsonObject): JsonObject | undefined {
  if (!isObject(body.thinking) || body.thinking.type !== "enabled") return undefined;
  const messages = objectsIn(body.messages);
  let start = 0;
  let isAnswer = false;
  for (const [index, { role, content }] of messages.entries()) {
    isAnswer = role === "user" && (isAnswer || blocksOf(content).some((block) => block.type === "tool_result"));
    if (role === "user" && !isAnswer) start = index + 1;
  }
  const begins = (index: number) => messages[index]?.role === "assistant" && messages[index - 1]?.role !== "assistant";
  const turn = messages.slice(start).filter((_, index) => begins(start + index));
  const begunByThinking = turn.some(({ content }) => isThinking(blocksOf(content)[0] ?? {}));
  return turn.length === 0 || begunByThinking ? undefined : { thinking: undefined };
}

/** Converts between adaptive thinking, a thinking budget and none, by what the model supports. */
function thinkingAdaptive(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const { thinking } = body;
  const { adaptiveThinking, thinkingBudget: bounds } = model.supports;
  if (!isObject(thinking) || !thinks(body)) return undefined;
  const config = isObject(body.output_config) ? body.output_config : {};
  const effortSaid = typeof config.effort === "string" ? { effort: config.effort } : {};
  if (!adaptiveThinking && !bounds) return { thinking: undefined };
  if (thinking.type === "adaptive") {
    if (adaptiveThinking) return undefined;
    const budget = budgetOf({ adaptive: true, ...effortSaid }, model, numberIn(body.max_tokens));
    const shown = thinking.display === "omitted" ? thinking : without(thinking, ["display"]);
    return { thinking: budget && { ...shown, type: "enabled", budget_tokens: budget } };
  }
  if (bounds) return undefined;
  const word = effortSaid.effort ?? effortOf({ budget: numberIn(thinking.budget_tokens) }, model);
  const adaptive = { display: "summarized", ...without(thinking, ["budget_tokens"]), type: "adaptive" };
  return { thinking: adaptive, ...(word === undefined ? {} : { output_config: { ...config, effort: word } }) };
}

function thinkingBudget(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const { thinking } = body;
  if (!isObject(thinking) || thinking.type !== "enabled") return undefined;
  const wanted = numberIn(thinking.budget_tokens);
  const budget = budgetOf(
    wanted === undefined ? { adaptive: true } : { budget: wanted },
    model,
    numberIn(body.max_tokens),
  );
  if (budget !== undefined && budget === wanted) return undefined;
  return { thinking: budget && { ...thinking, budget_tokens: budget } };
}

/** Edits that clear thinking are refused if thinking is disabled. */
export function clearThinking(body: JsonObject): JsonObject | undefined {
  const { context_management } = body;
  if (thinks(body) || !isObject(context_management)) return undefined;
  const edits = objectsIn(context_management.edits);
  const kept = edits.filter(({ type }) => typeof type !== "string" || !type.startsWith("clear_thinking_"));
  if (kept.length === edits.length) return undefined;
  return { context_management: kept.length === 0 ? undefined : { ...context_management, edits: kept } };
}

/** The list says that the model's backend does not edit the context: it refuses the field (caozhiyuan/copilot-api, 2026-07). */
function contextManagement(body: JsonObject, { supports }: ModelFacts): JsonObject | undefined {
  const isRefused = supports.contextEditing === false && "context_management" in body;
  return isRefused ? { context_management: undefined } : undefined;
}

function effort(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const config = body.output_config;
  if (!isObject(config) || typeof config.effort !== "string") return undefined;
  const word = effortOf({ effort: config.effort }, model);
  if (word === config.effort) return undefined;
  return { output_config: filled(omitUndefined({ ...config, effort: word })) };
}

/** The schema of a reply in the form that Anthropic takes, where it can be said in it. */
function outputSchema(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const { config, format } = formatIn(body);
  const schema = format && model.supports.structuredOutputs ? closedSchema(format.schema) : undefined;
  if (schema === undefined || schema === format?.schema) return undefined;
  return { output_format: undefined, output_config: { ...config, format: { ...format, schema } } };
}

/** Keeps such a schema if the model supports structured outputs; asks for any other in the system text. */
function structuredOutput(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const { config, format } = formatIn(body);
  if (!format) return undefined;
  const isAble = model.supports.structuredOutputs && format.type === "json_schema";
  if (!isAble || closedSchema(format.schema) !== format.schema) return formatInWords(body, format.schema);
  return config.format === undefined ? { output_format: undefined, output_config: { ...config, format } } : undefined;
}

function formatIn({ output_config, output_format }: JsonObject): { config: JsonObject; format?: JsonObject } {
  const config = isObject(output_config) ? output_config : {};
  const format = config.format ?? output_format;
  return isObject(format) ? { config, format } : { config };
}

/** The fields of a request that asks for JSON in its system text. @param schema Which the JSON has to match; undefined for any. */
export function formatInWords({ output_config: config, system }: JsonObject, schema: unknown): JsonObject {
  return {
    output_format: undefined,
    output_config: isObject(config) ? filled(without(config, ["format"])) : undefined,
    system: [...blocksOf(system), textBlock(wishForJson(schema))],
  };
}

/** Either `temperature` or `top_p`; none with thinking, and none for models with adaptive thinking only. */
function sampling(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const [temperature, topP, topK] = [body.temperature, body.top_p, body.top_k].map(numberIn);
  const fixed = model.supports.adaptiveThinking && !model.supports.thinkingBudget;
  const changes: JsonObject = {};
  const set = (number: number | undefined) => number !== undefined;
  if (set(temperature) && temperature !== 1 && (fixed || thinks(body))) changes.temperature = undefined;
  else if (temperature !== undefined && temperature > 1) changes.temperature = 1;
  const low = topP !== undefined && topP < 0.95;
  if (set(topP) && (fixed || set(temperature) || (thinks(body) && low))) changes.top_p = undefined;
  if (set(topK) && (fixed || thinks(body))) changes.top_k = undefined;
  return filled(changes);
}

const thinks = ({ thinking }: JsonObject): boolean =>
  isObject(thinking) && (thinking.type === "enabled" || thinking.type === "adaptive");
