/**
 * What the upstream refuses in a Messages request, and what is sent instead: one rule for each refusal, applied in this
 * order to passed-through and to translated requests alike. A rule that changes nothing keeps every object as it is.
 */

import { isObject } from "../../lib/json";
import { plainName } from "../../lib/json-shape";
import type { TranslationOptions } from "../codec";
import type { JsonObject } from "../hub/conversation";
import { filled, omitUndefined, refuse, textIn, without } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { emptyTools, modelName, type RuleRow, requestRules, rulesNamed } from "../hub/rules";
import { toolSearchNames } from "../hub/searches";
import { isStrictEverywhere } from "../hub/strict-schema";
import { compacts, isRefused, usesToolSearch, withheldFields } from "./betas";
import { lostCitations, ownCitations } from "./citations";
import { foreignThinking, systemAlone, turnRules, withSystemFolded } from "./history-rules";
import { imageTypes } from "./images";
import { cacheInToolResult, cacheOnThinking, clearThinking, limitRules, ownForm, thinkingInToolLoop } from "./limits";
import { systemTurnRules, withoutSystemTurns } from "./system-turns";
import { eachBlock, eachResultBlock, eachTool, isThinking, objectsIn, textBlock, withoutBilling } from "./traverse";

const unsupported = ["inference_geo", "service_tier", ...withheldFields()];
const toolFieldNames = ["input_examples", "allowed_callers"];

export const rules: Record<string, RuleRow> = {
  "model-name": modelName,
  "billing-header": ["system", billingHeader],
  safeguards: ["safeguards", (body) => ("safeguards" in body ? { safeguards: undefined } : undefined)],
  "unsupported-fields": [...unsupported, unsupportedFields],
  "beta-fields": ["thinking", "output_config", "context_management", betaFields],
  ...systemTurnRules,
  compaction: ["compaction", compactionInWords],
  "server-tools": ["tools", serverTools],
  "empty-tools": emptyTools,
  "tool-choice-without-tools": ["tool_choice", toolChoiceWithoutTools],
  "blank-stop": ["stop_sequences", blankStop],
  "eager-input-streaming": [
    "eager_input_streaming",
    (body, { supports }) =>
      supports.eagerInput ? undefined : eachTool(body, (tool) => without(tool, ["eager_input_streaming"])),
  ],
  "tool-fields": ["strict", ...toolFieldNames, toolFields],
  "schema-dialect": ["tools", schemaDialect],
  "input-schema": ["tools", inputSchema],
  "defer-loading": ["defer_loading", deferLoading],
  "tool-reference": ["tool_reference", toolReference],
  "lost-citations": ["citations", lostCitations],
  "server-calls": ["server_tool_use", "mcp_tool_use", serverCalls],
  "image-type": ["image", imageTypes],
  "foreign-thinking": ["thinking", "redacted_thinking", foreignThinking],
  "cache-in-tool-result": ["cache_control", cacheInToolResult],
  "cache-on-thinking": ["cache_control", cacheOnThinking],
  ...turnRules,
  ...limitRules,
  "system-alone": ["system", systemAlone],
};

/** What a rule removed, if its name does not say it. */
const dropped: Record<string, (before: JsonObject, after: JsonObject) => string[]> = {
  safeguards: () => ["safeguards"],
  "unsupported-fields": (before) => unsupportedIn(before).filter((key) => before[key] != null),
  "server-tools": (before) => objectsIn(before.tools).filter(isServerTool).map(nameOfTool),
  "server-calls": ({ messages }) => [
    ...new Set(objectsIn(messages).flatMap(({ content }) => objectsIn(content).filter(isServerCall).map(nameOfCall))),
  ],
};

export const { applyRules, fixRequest } = requestRules({
  rules,
  dropped,
  noteTranslated(notes, rule, after) {
    // The request says the same in another form.
    if (rule === ownForm) notes.addFixup(rule);
    else notes.addDropped(sentenceOf(rule, after));
  },
  // Folders of the person's machine stay here.
  providerRules: {
    ...rulesNamed(rules, ["model-name", "safeguards", "foreign-thinking", "failed-result", "tool-ids"]),
    "lost-citations": ["citations", ownCitations],
  },
});

/** The note of a rule: its name, or a sentence where the name does not tell enough. */
function sentenceOf(rule: string, after: JsonObject): string {
  if (rule === "max-tokens-limit") return `max_tokens lowered to ${after.max_tokens}`;
  const word = isObject(after.output_config) ? after.output_config.effort : undefined;
  return rule === "effort" && word !== undefined ? `effort lowered to ${word}` : rule;
}

/** Removes earlier thinking, and disables thinking if the request would be refused otherwise. */
export function forgetThinking(body: JsonObject, isForeign: (mark: string) => boolean): JsonObject {
  const changes = eachBlock(body, (block) =>
    isThinking(block) && isForeign(textIn(block.signature ?? block.data)) ? undefined : block,
  );
  if (!changes) return body;
  const forgotten = { ...body, ...changes };
  const unasked = omitUndefined({ ...forgotten, ...thinkingInToolLoop(forgotten) });
  return omitUndefined({ ...unasked, ...clearThinking(unasked) });
}

/** The request without system messages within the conversation, where they were refused; undefined if it has none. */
export function foldSystem(body: JsonObject): JsonObject | undefined {
  const plain = withoutSystemTurns(body);
  const folded = withSystemFolded(plain, false);
  return folded && { output_config: plain.output_config, ...folded };
}

/**
 * "x-anthropic-billing-header is a reserved keyword and may not be used in the system prompt": the answer of some of the
 * hosts behind Copilot to Claude Code's first system block (seen 2026-01).
 */
function billingHeader({ system }: JsonObject): JsonObject | undefined {
  const left = withoutBilling(system);
  return left === system ? undefined : { system: left };
}

/** "Extra inputs are not permitted", or not known to be accepted. */
function unsupportedFields(body: JsonObject): JsonObject | undefined {
  return filled(Object.fromEntries(unsupportedIn(body).map((key) => [key, undefined])));
}

const unsupportedIn = (body: JsonObject): string[] => unsupported.filter((key) => key in body);

/** Fields of betas inside other fields. */
function betaFields(body: JsonObject, _: ModelFacts, options: TranslationOptions): JsonObject | undefined {
  const changes: JsonObject = {};
  for (const [holder, fields] of nestedFields) {
    const before = body[holder];
    const after = isObject(before) ? without(before, fields) : before;
    if (isObject(after) && after !== before) changes[holder] = filled(after);
  }
  const { context_management: context } = body;
  if (context != null && isRefused("context_management", options)) return { ...changes, context_management: undefined };
  const edits = isObject(context) ? objectsIn(context.edits) : [];
  const mayCompact = !isRefused("context_management.edits[].type", options);
  const kept = edits.filter(
    ({ type }) =>
      typeof type !== "string" || !type.startsWith("compact_") || (mayCompact && type === "compact_20260112"),
  );
  if (isObject(context) && kept.length < edits.length)
    changes.context_management = kept.length === 0 ? undefined : { ...context, edits: kept };
  return filled(changes);
}

const nestedFields = (["thinking", "output_config"] as const).map(
  (holder) => [holder, withheldFields(holder)] as const,
);

/** Tools that Anthropic's own API runs: "The use of the web search tool is not supported." */
function serverTools(body: JsonObject): JsonObject | undefined {
  const all = objectsIn(body.tools);
  const kept = all.filter((tool) => !isServerTool(tool));
  const choice = isObject(body.tool_choice) ? body.tool_choice : {};
  const needed = all.find((tool) => isServerTool(tool) && (kept.length === 0 || choice.name === tool.name));
  if (!needed) return kept.length === all.length ? undefined : { tools: kept };
  const sentence = `The tool \`${nameOfTool(needed)}\` is built into Anthropic's own API; GitHub Copilot does not offer it. Leave it out, or bring a tool of your own.`;
  refuse("tools", sentence, "unsupported_value");
}

const isServerTool = ({ type }: JsonObject): boolean =>
  typeof type === "string" && type !== "custom" && !type.startsWith(toolSearchNames) && !clientTools.test(type);

/**
 * Tools that Anthropic defines and the client runs. GitHub Copilot takes them; its answer to an unknown one names them all
 * (a run of 60 requests, 2026-07).
 */
const clientTools = /^(?:(?:bash|text_editor|memory)_\d{8}|computer_20251124)$/;

const nameOfTool = ({ type }: JsonObject): string => plainName(String(type));

/**
 * Calls that another provider ran while its model answered, and their results. But for searches of tools, no host behind
 * GitHub Copilot is known to accept them.
 */
function serverCalls(body: JsonObject): JsonObject | undefined {
  const removed = new Set<unknown>();
  return eachBlock(body, (block) => {
    if (isServerCall(block)) removed.add(block.id);
    return isServerCall(block) || removed.has(block.tool_use_id) ? undefined : block;
  });
}

/** A summary in place of the beginning, in a request without the edit that makes them: its words are what it says. */
function compactionInWords(body: JsonObject): JsonObject | undefined {
  if (compacts(body)) return undefined;
  return eachBlock(body, (block) =>
    block.type === "compaction" ? (typeof block.content === "string" ? textBlock(block.content) : undefined) : block,
  );
}

const isServerCall = ({ type, name }: JsonObject): boolean =>
  type === "mcp_tool_use" || (type === "server_tool_use" && !textIn(name).startsWith(toolSearchNames));

const nameOfCall = ({ name }: JsonObject): string => plainName(textIn(name));

/** "stop_sequences: each stop sequence must contain non-whitespace" (BerriAI/litellm#3286) */
function blankStop({ stop_sequences: all }: JsonObject): JsonObject | undefined {
  if (!Array.isArray(all)) return undefined;
  const kept = all.filter((text) => typeof text !== "string" || /\S/.test(text));
  if (kept.length === all.length) return undefined;
  return { stop_sequences: kept.length === 0 ? undefined : kept };
}

function toolChoiceWithoutTools(body: JsonObject): JsonObject | undefined {
  return body.tool_choice === undefined || objectsIn(body.tools).length > 0 ? undefined : { tool_choice: undefined };
}

/** Anthropic: "Too many strict tools". */
const mostStrictTools = 20;

/** `strict` goes up where the schema qualifies for it, and the others with the beta of tool search only. */
function toolFields(body: JsonObject): JsonObject | undefined {
  if (usesToolSearch(body)) return undefined;
  let strict = 0;
  return eachTool(body, (tool) => {
    const isKept = tool.strict === true && isStrictEverywhere(tool.input_schema) && ++strict <= mostStrictTools;
    return without(tool, isKept ? toolFieldNames : ["strict", ...toolFieldNames]);
  });
}

function schemaDialect(body: JsonObject): JsonObject | undefined {
  return eachTool(body, (tool) => {
    const schema = tool.input_schema;
    return isObject(schema) && "$schema" in schema ? { ...tool, input_schema: without(schema, ["$schema"]) } : tool;
  });
}

/** The schema of a client's tool needs the type `object`. */
function inputSchema(body: JsonObject): JsonObject | undefined {
  return eachTool(body, (tool) => {
    const schema = isObject(tool.input_schema) ? tool.input_schema : { properties: {} };
    const own = tool.type == null || tool.type === "custom";
    return own && schema.type == null ? { ...tool, input_schema: { ...schema, type: "object" } } : tool;
  });
}

function deferLoading(body: JsonObject): JsonObject | undefined {
  return eachTool(body, (tool) => (tool.defer_loading === true ? without(tool, ["cache_control"]) : tool));
}

/** "Tool reference 'X' not found in available tools" */
function toolReference(body: JsonObject): JsonObject | undefined {
  const names = new Set(objectsIn(body.tools).map((tool) => tool.name));
  const isLost = (block: JsonObject) => block.type === "tool_reference" && !names.has(block.tool_name);
  return eachResultBlock(body, (inner) => (isLost(inner) ? undefined : inner));
}
