/**
 * Requests of the messages dialect.
 *
 * Normalized, because the meaning is the same: content of one plain text block is a string, consecutive messages of one
 * role are merged, empty `system`, content and tools are omitted; `is_error`, `stream`, `strict` and
 * `disable_parallel_tool_use` are written only if true; a tool's type `custom` and null values are omitted;
 * `output_format` becomes `output_config.format`.
 */

import { ProxyError } from "../../errors";
import { isObject, numberIn, parseJson } from "../../json";
import type { EncodedRequest, TranslationOptions } from "../codec";
import type { Conversation, JsonObject, Reasoning, ResponseFormat, Turn } from "../hub/conversation";
import { Fields } from "../hub/fields";
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
import { budgetOf } from "../hub/reasoning";
import { decodeSampling, encodeSampling } from "../hub/sampling";
import { isStrict } from "../hub/strict-schema";
import { onlyAllowed } from "../hub/tools";
import { isRefused } from "./betas";
import { addCacheMarks } from "./cache-marks";
import { lostCitations } from "./citations";
import { threadCode } from "./errors";
import { asExtras, dropExtras, keySet, nestedExtras, refuseEssential, restoreExtras } from "./extras";
import { decodeContent, encodePart, plainest } from "./parts";
import { applyRules } from "./rules";
import { decodeChoice, decodeTool, encodeChoice, encodeTools } from "./tools";
import { withoutBilling } from "./traverse";

// ── Wire facts ──

/** The fields that are read; all others become extras. */
const knownFields = {
  request: keySet(
    "model max_tokens system messages tools tool_choice thinking output_config output_format stop_sequences temperature top_p top_k stream",
  ),
  outputConfig: keySet("effort format"),
  format: keySet("type schema"),
  thinking: { enabled: keySet("type budget_tokens"), adaptive: keySet("type"), disabled: keySet("type") },
  turn: keySet("role content"),
};

// ── Decode ──

/** @throws ProxyError `invalid_request` if there is no message, or if the earlier ones are left out. */
export function checkRequest({ messages, thread }: JsonObject): void {
  filledAt(messages, "messages");
  if (thread != null && (!isObject(thread) || thread.type !== "create")) refuseThread();
}

/**
 * A request that continues a thread has only the newest turn: Anthropic keeps the others. To answer it without them would
 * be to lose the conversation. Claude Code sends all turns again after this error (2.1.269, 2026-09).
 */
function refuseThread(): never {
  const sentence = "No threads are kept here: send the whole conversation again, without `thread`.";
  throw new ProxyError("invalid_request", sentence, { param: "thread", code: threadCode });
}

/** The client's session: in the JSON of `metadata.user_id`, or at the end of its older form. Never its device's id. */
export function session({ metadata, prompt_cache_key }: JsonObject): unknown {
  if (prompt_cache_key != null) return prompt_cache_key;
  const user = isObject(metadata) ? metadata.user_id : undefined;
  if (typeof user !== "string") return undefined;
  const facts = parseJson(user);
  return isObject(facts) ? facts.session_id : /_session_([\w-]+)$/.exec(user)?.[1];
}

/** Reads a request. */
export function decodeRequest(body: unknown): Conversation {
  const sent = objectAt(body, "body");
  // Before the search itself becomes a function's call: afterwards nobody can tell what a place refers to.
  const request = { ...sent, ...lostCitations(sent) };
  const { reasoning, extras: thinkingExtras } = decodeReasoning(request);
  const { format, extras: formatExtras } = decodeFormat(request);
  const { toolChoice, parallelTools, extras: choiceExtras } = decodeChoice(request.tool_choice);
  return {
    model: textAt(request.model, "model"),
    turns: [...decodeSystem(request.system), ...arrayAt(request.messages, "messages").map(decodeTurn)],
    tools: listAt(request.tools, "tools").map(decodeTool),
    toolChoice,
    parallelTools,
    maxTokens: request.max_tokens === 0 ? 0 : optionalCount(request.max_tokens, "max_tokens"),
    stop: decodeStop(request.stop_sequences),
    temperature: optionalNumber(request.temperature, "temperature"),
    topP: optionalNumber(request.top_p, "top_p"),
    sampling: decodeSampling(new Fields(request), ["topK"]),
    reasoning,
    format,
    stream: optionalBoolean(request.stream, "stream") ?? false,
    ...asExtras(omit(request, knownFields.request), thinkingExtras, formatExtras, choiceExtras),
  };
}

function decodeSystem(system: unknown): Turn[] {
  const parts = decodeContent(withoutBilling(system), "system");
  return parts.length === 0 ? [] : [{ role: "system", parts }];
}

function decodeTurn(value: unknown, index: number): Turn {
  const path = `messages[${index}]`;
  const message = objectAt(value, path);
  const { role } = message;
  if (role !== "user" && role !== "assistant" && role !== "system") {
    const sentence = `\`${path}.role\` must be \`user\`, \`assistant\` or \`system\`.`;
    throw new ProxyError("invalid_request", sentence, { param: `${path}.role` });
  }
  return {
    role,
    parts: decodeContent(message.content, `${path}.content`),
    ...asExtras(omit(message, knownFields.turn)),
  };
}

function decodeStop(value: unknown): string[] | undefined {
  return value == null
    ? undefined
    : arrayAt(value, "stop_sequences").map((text, index) => textAt(text, `stop_sequences[${index}]`));
}

/** An effort implies `adaptive`; an effort without `thinking` asks for no thinking. */
function decodeReasoning(request: JsonObject): { reasoning?: Reasoning; extras?: JsonObject } {
  const config = request.output_config == null ? {} : objectAt(request.output_config, "output_config");
  const effort = optionalText(config.effort, "output_config.effort");
  const given = effort === undefined ? {} : { effort };
  if (request.thinking == null) return effort === undefined ? {} : { reasoning: { effort, adaptive: false } };

  const thinking = objectAt(request.thinking, "thinking");
  if (typeof thinking.type !== "string")
    return { ...(effort === undefined ? {} : { reasoning: given }), extras: { thinking } };
  // As the rules have Claude show it.
  const summary = thinking.display === "omitted" ? {} : { summary: "auto" };
  switch (thinking.type) {
    case "enabled": {
      const budget = readBudget(thinking.budget_tokens);
      const extras = nestedExtras("thinking", thinking, knownFields.thinking.enabled);
      return { reasoning: { ...given, ...(budget === undefined ? {} : { budget }), ...summary }, extras };
    }
    case "disabled":
      return {
        reasoning: { ...given, disabled: true },
        extras: nestedExtras("thinking", thinking, knownFields.thinking.disabled),
      };
    default: {
      const extras = nestedExtras("thinking", thinking, knownFields.thinking.adaptive);
      return { reasoning: { ...(effort === undefined ? { adaptive: true } : given), ...summary }, extras };
    }
  }
}

/** The minimum of the dialect; used for clients that compute a budget below 1. */
const leastBudget = 1024;

function readBudget(tokens: unknown): number | undefined {
  const count = numberIn(tokens);
  const missed = count !== undefined && Number.isSafeInteger(count) && count < 1;
  return missed ? leastBudget : optionalCount(tokens, "thinking.budget_tokens");
}

function decodeFormat(request: JsonObject): { format?: ResponseFormat; extras?: JsonObject } {
  const config = isObject(request.output_config) ? request.output_config : {};
  const outer = nestedExtras("output_config", config, knownFields.outputConfig);
  const value = config.format ?? request.output_format;
  if (value == null) return { extras: outer };
  const format = objectAt(value, "output_config.format");
  if (format.type !== "json_schema") return { extras: { ...outer, "output_config.format": format } };
  // Anthropic always enforces the schema; OpenAI only with `strict`, for schemas that qualify.
  const strict = isStrict(format.schema) ? { strict: true } : {};
  return {
    format: { schema: format.schema, ...strict },
    extras: { ...outer, ...nestedExtras("output_config.format", format, knownFields.format) },
  };
}

// ── Encode ──

/** Writes a request for an upstream of this dialect. */
export function encodeRequest(
  request: Conversation,
  model: ModelFacts,
  options: TranslationOptions = { webSearch: true },
): EncodedRequest {
  const dropped = new Set<string>();
  const conversation = onlyAllowed(request);
  refuseEssential(conversation);
  dropExtras(conversation, dropped);
  const maxTokens = conversation.maxTokens ?? model.limits.output;
  const body = omitUndefined({
    model: model.id,
    max_tokens: maxTokens,
    ...encodeTurns(conversation.turns, dropped),
    tools: encodeTools(conversation, dropped),
    tool_choice: encodeChoice(conversation),
    ...encodeReasoning(conversation.reasoning, model, maxTokens),
    stop_sequences: conversation.stop,
    temperature: conversation.temperature,
    top_p: conversation.topP,
    ...encodeSampling(conversation, ["topK"], dropped),
    stream: conversation.stream || undefined,
  });
  encodeFormat(body, conversation.format, dropped);
  const ruled = applyRules(restoreExtras(body, conversation.extras?.anthropic), model, options);
  for (const note of [...ruled.fixups.map((rule) => noteOf(rule, ruled.body)), ...ruled.dropped]) dropped.add(note);
  const marked = options.cache?.marks
    ? addCacheMarks(ruled.body, options.hourCache && !isRefused("cache_control.ttl", options))
    : ruled.body;
  return {
    body: marked,
    dropped: [...dropped],
    fixups: marked === ruled.body ? [] : ["cache-marks-added"],
  };
}

/** What a rule did, in more detail if its name does not say it. */
function noteOf(rule: string, after: JsonObject): string {
  if (rule === "max-tokens-limit") return `max_tokens lowered to ${after.max_tokens}`;
  const word = isObject(after.output_config) ? after.output_config.effort : undefined;
  return rule === "effort" && word !== undefined ? `effort lowered to ${word}` : rule;
}

/** Leading system turns become `system`; later ones stay as messages, which the rules convert. */
function encodeTurns(turns: Turn[], dropped: Set<string>): { system: unknown; messages: JsonObject[] } {
  const system: JsonObject[] = [];
  const messages: JsonObject[] = [];
  let previous: { turn: Turn; content: JsonObject[] } | undefined;
  for (const turn of turns) {
    dropExtras(turn, dropped);
    const blocks = turn.parts.flatMap<JsonObject>((part) => encodePart(part, dropped) ?? []);
    if (blocks.length === 0) continue;
    const started =
      turn.role === "system" && messages.length === 0 && !turn.extras?.anthropic
        ? system
        : previous && joins(previous.turn, turn)
          ? previous.content
          : undefined;
    if (started) for (const block of blocks) started.push(block);
    else {
      previous = { turn, content: blocks };
      messages.push(restoreExtras({ role: turn.role, content: blocks }, turn.extras?.anthropic));
    }
  }
  for (const message of messages) message.content = plainest(message.content);
  return { system: system.length === 0 ? undefined : plainest(system), messages };
}

/** Consecutive turns of one role are one message: results of parallel calls must be in one message. */
const joins = (one: Turn, other: Turn): boolean =>
  one.role === other.role && !one.extras?.anthropic && !other.extras?.anthropic;

function encodeReasoning(
  reasoning: Reasoning | undefined,
  model: ModelFacts,
  maxTokens: number | undefined,
): { thinking?: JsonObject; output_config?: JsonObject } {
  if (!reasoning) return {};
  const { effort, budget, adaptive } = reasoning;
  if (reasoning.disabled || effort === "none")
    return { thinking: { type: "disabled" }, ...(effort && effort !== "none" ? { output_config: { effort } } : {}) };

  const output = effort === undefined ? {} : { output_config: { effort } };
  if (budget !== undefined) return { thinking: { type: "enabled", budget_tokens: budget }, ...output };
  if (adaptive === false || (!adaptive && effort === undefined)) return output;
  if (model.supports.adaptiveThinking) return { thinking: { type: "adaptive", display: "summarized" }, ...output };
  // This model has no adaptive thinking: the effort is converted to a budget.
  const tokens = budgetOf(reasoning, model, maxTokens);
  const output_config = model.supports.efforts.length === 0 ? {} : output;
  return tokens === undefined
    ? output_config
    : { thinking: { type: "enabled", budget_tokens: tokens }, ...output_config };
}

/** This dialect has no `json_object`: a rule asks for JSON in the system text. */
function encodeFormat(body: JsonObject, format: ResponseFormat | undefined, dropped: Set<string>): void {
  if (!format) return;
  if (format.description !== undefined) dropped.add("format description");
  const serialized =
    format.schema === undefined ? { type: "json_object" } : { type: "json_schema", schema: format.schema };
  body.output_config = { ...(isObject(body.output_config) ? body.output_config : {}), format: serialized };
}
