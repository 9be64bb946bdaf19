/**
 * Requests of the messages dialect.
 *
 * Normalized, because the meaning is the same: content of one plain text block is a string, consecutive messages of one
 * role are merged, empty `system`, content and tools are omitted; `is_error`, `stream`, `strict` and
 * `disable_parallel_tool_use` are written only if true; a tool's type `custom` and null values are omitted;
 * `output_format` becomes `output_config.format`.
 */

import { isObject, numberIn, parseJson } from "../../lib/json";
import type { TranslationOptions } from "../codec";
import type { Conversation, JsonObject, Reasoning, ResponseFormat, Turn } from "../hub/conversation";
import { Fields } from "../hub/fields";
import { filledAt, objectAt, omitUndefined, optionalCount, refuse, textAt } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { type Notes, unnoted } from "../hub/notes";
import { decodePlainFields, encodePlainFields } from "../hub/plain-fields";
import { budgetOf } from "../hub/reasoning";
import { isStrict } from "../hub/strict-schema";
import { onlyAllowed } from "../hub/tools";
import { isRefused } from "./betas";
import { addCacheMarks } from "./cache-marks";
import { lostCitations } from "./citations";
import { threadCode } from "./errors";
import { asExtras, dropExtras, nestedExtras, refuseEssential, restoreExtras } from "./extras";
import { decodeContent, encodePart, simplified } from "./parts";
import { applyRules } from "./rules";
import { withoutSystemTurns } from "./system-turns";
import { decodeChoice, decodeTool, encodeChoice, encodeTools } from "./tools";
import { withoutBilling } from "./traverse";

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
  refuse("thread", sentence, threadCode);
}

/** Characters; Claude Code's has some 250. */
const maxUserId = 4_000;

/** The client's session: in the JSON of `metadata.user_id`, or at the end of its older form. Never its device's id. */
export function session({ metadata, prompt_cache_key }: JsonObject): unknown {
  if (prompt_cache_key != null) return prompt_cache_key;
  const user = isObject(metadata) ? metadata.user_id : undefined;
  if (typeof user !== "string" || user.length > maxUserId) return undefined;
  const facts = parseJson(user);
  return isObject(facts) ? facts.session_id : /_session_([\w-]{1,256})$/.exec(user)?.[1];
}

/** It asks for a block that stands for the conversation, in place of an answer (@anthropic-ai/sdk 1.12): no other API has it. */
function refuseCompaction(): never {
  const sentence = "`compaction` is not supported for this model: leave it out, and ask for a summary in words.";
  refuse("compaction", sentence, "unsupported_parameter");
}

/** Reads a request. @throws ProxyError `invalid_request` naming the field. */
export function decodeRequest(body: unknown): Conversation {
  const sent = withoutSystemTurns(objectAt(body, "body"));
  // Before the search itself becomes a function's call: afterwards nobody can tell what a place refers to.
  const request = new Fields({ ...sent, ...lostCitations(sent) });
  if (request.any("compaction") != null) refuseCompaction();
  const config = request.any("output_config") == null ? undefined : request.fields("output_config");
  const { reasoning, extras: thinkingExtras } = decodeReasoning(request, config);
  const { format, extras: formatExtras } = decodeFormat(request, config);
  const { toolChoice, parallelTools, extras: choiceExtras } = decodeChoice(request.any("tool_choice"));
  return {
    model: request.text("model"),
    turns: [
      ...decodeSystem(request.any("system")),
      ...request.list("messages").map(([value, path]) => decodeTurn(Fields.at(value, path))),
    ],
    tools: request.optionalList("tools").map(([tool], index) => decodeTool(tool, index)),
    toolChoice,
    parallelTools,
    maxTokens: request.any("max_tokens") === 0 ? 0 : request.optionalCount("max_tokens"),
    stop: decodeStop(request),
    ...decodePlainFields(request, "messages"),
    reasoning,
    format,
    stream: request.optionalBoolean("stream") ?? false,
    ...asExtras(request.rest(), thinkingExtras, formatExtras, choiceExtras),
  };
}

function decodeSystem(system: unknown): Turn[] {
  const parts = decodeContent(withoutBilling(system), "system");
  return parts.length === 0 ? [] : [{ role: "system", parts }];
}

function decodeTurn(message: Fields): Turn {
  const role = message.any("role");
  if (role !== "user" && role !== "assistant" && role !== "system") {
    const param = message.pathOf("role");
    const sentence = `\`${param}\` must be \`user\`, \`assistant\` or \`system\`.`;
    refuse(param, sentence);
  }
  const parts = decodeContent(message.any("content"), message.pathOf("content"));
  return { role, parts, ...asExtras(message.rest()) };
}

function decodeStop(request: Fields): string[] | undefined {
  if (request.any("stop_sequences") == null) return undefined;
  return request.list("stop_sequences").map(([text, path]) => textAt(text, path));
}

/** An effort implies `adaptive`; an effort without `thinking` asks for no thinking. */
function decodeReasoning(request: Fields, config?: Fields): { reasoning?: Reasoning; extras?: JsonObject } {
  const effort = config?.optionalText("effort");
  const given = effort === undefined ? {} : { effort };
  if (request.any("thinking") == null) return effort === undefined ? {} : { reasoning: { effort, adaptive: false } };

  const thinking = request.fields("thinking");
  const type = thinking.any("type");
  if (typeof type !== "string")
    return { ...(effort === undefined ? {} : { reasoning: given }), extras: { thinking: thinking.object } };
  // The rules ask Claude for a summary unless the client wants none.
  const summary = thinking.object.display === "omitted" ? {} : { summary: "auto" };
  const reasoningOf = (): Reasoning => {
    if (type === "disabled") return { ...given, disabled: true };
    if (type !== "enabled") return { ...(effort === undefined ? { adaptive: true } : given), ...summary };
    const budget = readBudget(thinking.any("budget_tokens"));
    return { ...given, ...(budget === undefined ? {} : { budget }), ...summary };
  };
  return { reasoning: reasoningOf(), extras: nestedExtras("thinking", thinking) };
}

/** The minimum of the dialect; used for clients that compute a budget below 1. */
const leastBudget = 1024;

function readBudget(tokens: unknown): number | undefined {
  const count = numberIn(tokens);
  const missed = count !== undefined && Number.isSafeInteger(count) && count < 1;
  return missed ? leastBudget : optionalCount(tokens, "thinking.budget_tokens");
}

/** @param config The request's `output_config`, whose effort was read. */
function decodeFormat(request: Fields, config?: Fields): { format?: ResponseFormat; extras?: JsonObject } {
  const older = request.any("output_format");
  const value = config?.any("format") ?? older;
  const outer = config && nestedExtras("output_config", config);
  if (value == null) return { extras: outer };
  const format = Fields.at(value, "output_config.format");
  if (format.any("type") !== "json_schema") return { extras: { ...outer, "output_config.format": format.object } };
  const schema = format.any("schema");
  // Anthropic always enforces the schema; OpenAI only with `strict`, for schemas that qualify.
  const strict = isStrict(schema) ? { strict: true } : {};
  return {
    format: { schema, ...strict },
    extras: { ...outer, ...nestedExtras("output_config.format", format) },
  };
}

// ── Encode ──

/** Writes a request for an upstream of this dialect. */
export function encodeRequest(
  request: Conversation,
  model: ModelFacts,
  options: TranslationOptions = { webSearch: true },
): JsonObject {
  const { cache, hourCache, notes = unnoted } = options;
  const conversation = onlyAllowed(request);
  refuseEssential(conversation);
  dropExtras(conversation, notes);
  const maxTokens = conversation.maxTokens ?? model.limits.output;
  const body = omitUndefined({
    model: model.id,
    max_tokens: maxTokens,
    ...encodeTurns(conversation.turns, notes),
    tools: encodeTools(conversation, notes),
    tool_choice: encodeChoice(conversation),
    ...encodeReasoning(conversation.reasoning, model, maxTokens),
    stop_sequences: conversation.stop,
    ...encodePlainFields(conversation, "messages", notes),
    stream: conversation.stream || undefined,
  });
  encodeFormat(body, conversation.format, notes);
  const ruled = applyRules(restoreExtras(body, conversation.extras?.anthropic), model, options);
  if (!cache?.marks) return ruled;
  const marked = addCacheMarks(ruled, hourCache && !isRefused("cache_control.ttl", options));
  if (marked !== ruled) notes.addFixup("cache-marks-added");
  return marked;
}

/** Leading system turns become `system`, a list as in VS Code's client, which says that the upstream requires one (2026-10); later ones stay as messages, which the rules convert. */
function encodeTurns(turns: Turn[], notes: Notes): { system: unknown; messages: JsonObject[] } {
  const system: JsonObject[] = [];
  const messages: JsonObject[] = [];
  let previous: { turn: Turn; content: JsonObject[] } | undefined;
  for (const turn of turns) {
    dropExtras(turn, notes);
    const blocks = turn.parts.flatMap<JsonObject>((part) => encodePart(part, notes) ?? []);
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
  for (const message of messages) message.content = simplified(message.content);
  return { system: system.length === 0 ? undefined : system, messages };
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
function encodeFormat(body: JsonObject, format: ResponseFormat | undefined, notes: Notes): void {
  if (!format) return;
  if (format.description !== undefined) notes.addDropped("format description");
  const serialized =
    format.schema === undefined ? { type: "json_object" } : { type: "json_schema", schema: format.schema };
  body.output_config = { ...(isObject(body.output_config) ? body.output_config : {}), format: serialized };
}
