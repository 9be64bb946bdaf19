/**
 * Messages: what a client asks.
 *
 * Written one way, because it means the same: content of one plain text block is a string, neighbouring messages of one
 * role are one, an empty system, content or list of tools is none, `is_error`, `stream`, `strict` and
 * `disable_parallel_tool_use` are said only when true, a tool's type `custom` is not said, `output_format` is
 * `output_config.format`, and a null is not said.
 */

import { ProxyError } from "../../errors";
import { isObject, numberIn } from "../../json";
import type { Conversation, JsonObject, Reasoning, ResponseFormat, Turn } from "../hub/conversation";
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
import { isStrict } from "../hub/strict-schema";
import { onlyAllowed } from "../hub/tools";
import { asExtras, dropExtras, keySet, nestedExtras, refuseEssential, restoreExtras } from "./extras";
import { decodeContent, encodePart, plainest } from "./parts";
import { applyRules } from "./rules";
import { decodeChoice, decodeTool, encodeChoice, encodeTools } from "./tools";

// ── Wire facts ──

/** What is read of each object; the rest goes into its bag. */
const knownFields = {
  request: keySet(
    "model max_tokens system messages tools tool_choice thinking output_config output_format stop_sequences temperature top_p stream",
  ),
  outputConfig: keySet("effort format"),
  format: keySet("type schema"),
  thinking: { enabled: keySet("type budget_tokens"), adaptive: keySet("type"), disabled: keySet("type") },
  turn: keySet("role content"),
};

/** Claude Code's first system block changes with every prompt: in another dialect it would only spoil the cache. */
const billingHeader = { start: "x-anthropic-billing-header", key: "billing header" };

// ── Decode ──

/** @throws ProxyError `invalid_request` without a message. */
export function checkRequest({ messages }: JsonObject): void {
  filledAt(messages, "messages");
}

/** Reads a request. */
export function decodeRequest(body: unknown): Conversation {
  const request = objectAt(body, "body");
  const { header, system } = decodeSystem(request.system);
  const { reasoning, extras: thinkingExtras } = decodeReasoning(request);
  const { format, extras: formatExtras } = decodeFormat(request);
  const { toolChoice, parallelTools, extras: choiceExtras } = decodeChoice(request.tool_choice);
  return {
    model: textAt(request.model, "model"),
    turns: [...system, ...arrayAt(request.messages, "messages").map(decodeTurn)],
    tools: listAt(request.tools, "tools").map(decodeTool),
    toolChoice,
    parallelTools,
    maxTokens: request.max_tokens === 0 ? 0 : optionalCount(request.max_tokens, "max_tokens"),
    stop: decodeStop(request.stop_sequences),
    temperature: optionalNumber(request.temperature, "temperature"),
    topP: optionalNumber(request.top_p, "top_p"),
    reasoning,
    format,
    stream: optionalBoolean(request.stream, "stream") ?? false,
    ...asExtras(omit(request, knownFields.request), thinkingExtras, formatExtras, choiceExtras, header),
  };
}

function decodeSystem(system: unknown): { header?: JsonObject; system: Turn[] } {
  const blocks = typeof system === "string" || system == null ? undefined : arrayAt(system, "system");
  const first = blocks?.[0];
  const billed = isObject(first) && typeof first.text === "string" && first.text.startsWith(billingHeader.start);
  const parts = decodeContent(billed ? blocks?.slice(1) : system, "system");
  return {
    system: parts.length === 0 ? [] : [{ role: "system", parts }],
    ...(billed ? { header: { [billingHeader.key]: first } } : {}),
  };
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

/** With an effort, `adaptive` goes without saying; an effort for the words alone, without any thinking, denies it. */
function decodeReasoning(request: JsonObject): { reasoning?: Reasoning; extras?: JsonObject } {
  const config = request.output_config == null ? {} : objectAt(request.output_config, "output_config");
  const effort = optionalText(config.effort, "output_config.effort");
  const given = effort === undefined ? {} : { effort };
  if (request.thinking == null) return effort === undefined ? {} : { reasoning: { effort, adaptive: false } };

  const thinking = objectAt(request.thinking, "thinking");
  // Thinking with a budget was always shown; adaptive thinking is shown to who asks.
  const shown = thinking.display === "summarized" || (thinking.display === undefined && thinking.type === "enabled");
  const summary = shown ? { summary: "auto" } : {};
  switch (thinking.type) {
    case "enabled": {
      const budget = readBudget(thinking.budget_tokens);
      const extras = nestedExtras("thinking", thinking, knownFields.thinking.enabled);
      return { reasoning: { ...given, ...(budget === undefined ? {} : { budget }), ...summary }, extras };
    }
    case "adaptive": {
      const extras = nestedExtras("thinking", thinking, knownFields.thinking.adaptive);
      return { reasoning: { ...(effort === undefined ? { adaptive: true } : given), ...summary }, extras };
    }
    case "disabled":
      return {
        reasoning: { ...given, disabled: true },
        extras: nestedExtras("thinking", thinking, knownFields.thinking.disabled),
      };
    default:
      return { ...(effort === undefined ? {} : { reasoning: given }), extras: { thinking } };
  }
}

/** The least the dialect takes; what some clients mean by a number they reckoned to less than nothing. */
const leastBudget = 1024;

function readBudget(tokens: unknown): number | undefined {
  const count = numberIn(tokens);
  const missed = Number.isSafeInteger(count) && count! < 1;
  return missed ? leastBudget : optionalCount(tokens, "thinking.budget_tokens");
}

function decodeFormat(request: JsonObject): { format?: ResponseFormat; extras?: JsonObject } {
  const config = isObject(request.output_config) ? request.output_config : {};
  const outer = nestedExtras("output_config", config, knownFields.outputConfig);
  const value = config.format ?? request.output_format;
  if (value == null) return { extras: outer };
  const format = objectAt(value, "output_config.format");
  if (format.type !== "json_schema") return { extras: { ...outer, "output_config.format": format } };
  // Anthropic holds every reply to its schema; OpenAI where it is asked to, and the schema says all it must.
  const strict = isStrict(format.schema) ? { strict: true } : {};
  return {
    format: { schema: format.schema, ...strict },
    extras: { ...outer, ...nestedExtras("output_config.format", format, knownFields.format) },
  };
}

// ── Encode ──

/** Writes a request for an upstream of this dialect. */
export function encodeRequest(request: Conversation, model: ModelFacts): { body: JsonObject; dropped: string[] } {
  const dropped = new Set<string>();
  const conversation = onlyAllowed(request);
  refuseEssential(conversation);
  dropExtras(conversation, dropped);
  const { [billingHeader.key]: header, ...extras } = conversation.extras?.anthropic ?? {};
  const maxTokens = conversation.maxTokens ?? model.limits.output;
  const body = omitUndefined({
    model: model.id,
    max_tokens: maxTokens,
    ...encodeTurns(conversation.turns, header, dropped),
    tools: encodeTools(conversation, dropped),
    tool_choice: encodeChoice(conversation),
    ...encodeReasoning(conversation.reasoning, model, maxTokens),
    stop_sequences: conversation.stop,
    temperature: conversation.temperature,
    top_p: conversation.topP,
    stream: conversation.stream || undefined,
  });
  encodeFormat(body, conversation.format, dropped);
  const ruled = applyRules(restoreExtras(body, extras), model);
  for (const note of [...ruled.fixups.map((rule) => noteOf(rule, ruled.body)), ...ruled.notes]) dropped.add(note);
  return { body: ruled.body, dropped: [...dropped] };
}

/** What a rule did, in words where its name does not tell. */
function noteOf(rule: string, after: JsonObject): string {
  if (rule === "max-tokens-limit") return `max_tokens lowered to ${after.max_tokens}`;
  const word = isObject(after.output_config) ? after.output_config.effort : undefined;
  return rule === "effort" && word !== undefined ? `effort lowered to ${word}` : rule;
}

/** System turns before all others are the system; later ones keep their place as messages, until the rules fold them. */
function encodeTurns(
  turns: Turn[],
  header: unknown,
  dropped: Set<string>,
): { system: unknown; messages: JsonObject[] } {
  const system: JsonObject[] = isObject(header) ? [header] : [];
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

/** The results of parallel calls belong into one message, whatever the turns they came in. */
const joins = (one: Turn, other: Turn): boolean =>
  one.role === other.role && !one.extras?.anthropic && !other.extras?.anthropic;

function encodeReasoning(
  reasoning: Reasoning | undefined,
  model: ModelFacts,
  maxTokens: number | undefined,
): { thinking?: JsonObject; output_config?: JsonObject } {
  if (!reasoning) return {};
  const { effort, budget, adaptive, summary } = reasoning;
  if (reasoning.disabled || effort === "none")
    return { thinking: { type: "disabled" }, ...(effort && effort !== "none" ? { output_config: { effort } } : {}) };

  const output = effort === undefined ? {} : { output_config: { effort } };
  if (budget !== undefined) return { thinking: { type: "enabled", budget_tokens: budget }, ...output };
  if (adaptive === false || (!adaptive && effort === undefined)) return output;
  if (model.supports.adaptiveThinking)
    return { thinking: { type: "adaptive", ...(summary === undefined ? {} : { display: "summarized" }) }, ...output };
  // This model counts its thinking instead: the number says what the word said.
  const tokens = budgetOf(reasoning, model, maxTokens);
  const output_config = model.supports.efforts.length === 0 ? {} : output;
  return tokens === undefined
    ? output_config
    : { thinking: { type: "enabled", budget_tokens: tokens }, ...output_config };
}

/** JSON of any shape has no word here: the rules put the wish into the system text. */
function encodeFormat(body: JsonObject, format: ResponseFormat | undefined, dropped: Set<string>): void {
  if (!format) return;
  if (format.description !== undefined) dropped.add("format description");
  const serialized =
    format.schema === undefined ? { type: "json_object" } : { type: "json_schema", schema: format.schema };
  body.output_config = { ...(isObject(body.output_config) ? body.output_config : {}), format: serialized };
}
