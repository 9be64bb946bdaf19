/**
 * What the upstream refuses in a Messages request, and what is sent instead: one rule for each refusal, applied in this
 * order to passed-through and to translated requests alike. A rule that changes nothing keeps every object as it is.
 */

import { ProxyError } from "../../errors";
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { omitUndefined } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { applyInOrder, type Rule, rulesNamed } from "../hub/rules";
import { type FittedWire, fitWire } from "../hub/tools";
import { usesToolSearch } from "./betas";
import { lostCitations, ownCitations } from "./citations";
import {
  cacheInToolResult,
  cacheLimit,
  cacheOnThinking,
  cacheTopLevel,
  clearThinking,
  controlWithout,
  effort,
  maxTokens,
  maxTokensLimit,
  sampling,
  structuredOutput,
  thinkingAdaptive,
  thinkingBudget,
  thinkingInToolLoop,
  toolChoiceWithThinking,
} from "./limits";
import { eachBlock, eachMark, eachResultBlock, eachTool, isThinking, objectsIn, without } from "./traverse";
import {
  emptyText,
  foreignThinking,
  messageOutputConfig,
  missingToolResult,
  noPrefill,
  orphanToolResult,
  systemAlone,
  systemRole,
  toolIds,
  toolResultOrder,
} from "./turns";

export const rules: Record<string, Rule<[model: ModelFacts]>> = {
  "model-name": (body, model) => (body.model === model.id ? undefined : { model: model.id }),
  "unsupported-fields": unsupportedFields,
  "server-tools": serverTools,
  "empty-tools": ({ tools }) => (Array.isArray(tools) && tools.length === 0 ? { tools: undefined } : undefined),
  "tool-choice-without-tools": toolChoiceWithoutTools,
  "blank-stop": blankStop,
  "eager-input-streaming": (body) => eachTool(body, (tool) => without(tool, ["eager_input_streaming"])),
  "tool-fields": toolFields,
  "schema-dialect": schemaDialect,
  "input-schema": inputSchema,
  "defer-loading": deferLoading,
  "tool-reference": toolReference,
  "lost-citations": lostCitations,
  "foreign-thinking": foreignThinking,
  "cache-in-tool-result": cacheInToolResult,
  "cache-on-thinking": cacheOnThinking,
  "empty-text": emptyText,
  "system-role": systemRole,
  "message-output-config": messageOutputConfig,
  "tool-ids": toolIds,
  "tool-result-order": toolResultOrder,
  "missing-tool-result": missingToolResult,
  "orphan-tool-result": orphanToolResult,
  "no-prefill": noPrefill,
  "cache-top-level": cacheTopLevel,
  "cache-scope": (body) => eachMark(body, (holder) => controlWithout(holder, "scope")),
  "cache-ttl": (body) => eachMark(body, (holder) => controlWithout(holder, "ttl")),
  "cache-limit": cacheLimit,
  "max-tokens": maxTokens,
  "max-tokens-limit": maxTokensLimit,
  "tool-choice-with-thinking": toolChoiceWithThinking,
  "thinking-adaptive": thinkingAdaptive,
  "thinking-in-tool-loop": thinkingInToolLoop,
  "thinking-budget": thinkingBudget,
  "clear-thinking": clearThinking,
  effort,
  "structured-output": structuredOutput,
  "system-alone": systemAlone,
  sampling,
};

/** What a rule removed, if its name does not say it. */
const notes: Record<string, (before: JsonObject, after: JsonObject) => string[]> = {
  "server-tools": (before) => objectsIn(before.tools).filter(isServerTool).map(nameOfTool),
};

export const applyRules = applyInOrder(rules, notes);

/** For what passes through to a provider: it decides itself what it refuses. */
export const applyProviderRules = applyInOrder(
  { ...rulesNamed(rules, ["model-name", "foreign-thinking"]), "lost-citations": ownCitations },
  notes,
);

/** Removes all earlier thinking, and disables thinking if the request would be refused otherwise. */
export function forgetThinking(body: JsonObject): JsonObject {
  const forgotten = { ...body, ...eachBlock(body, (block) => (isThinking(block) ? undefined : block)) };
  const unasked = omitUndefined({ ...forgotten, ...thinkingInToolLoop(forgotten) });
  return omitUndefined({ ...unasked, ...clearThinking(unasked) });
}

/** Repairs tool schemas that the upstream refused. */
export const repairTools = (body: JsonObject): FittedWire | undefined =>
  fitWire("messages", (fit) =>
    eachTool(body, (tool) => {
      const input_schema = fit(tool.input_schema);
      return input_schema === tool.input_schema ? tool : { ...tool, input_schema };
    }),
  );

/** "Extra inputs are not permitted", or not known to be accepted. */
function unsupportedFields(body: JsonObject): JsonObject | undefined {
  const fields = ["inference_geo", "container", "mcp_servers", "speed", "service_tier"].filter((key) => key in body);
  return fields.length === 0 ? undefined : Object.fromEntries(fields.map((key) => [key, undefined]));
}

/**
 * Tools of Anthropic's own API, run there or by the client (`bash_…`, `text_editor_…`): "The use of the
 * web search tool is not supported."
 */
function serverTools(body: JsonObject): JsonObject | undefined {
  const all = objectsIn(body.tools);
  const kept = all.filter((tool) => !isServerTool(tool));
  const choice = isObject(body.tool_choice) ? body.tool_choice : {};
  const needed = all.find((tool) => isServerTool(tool) && (kept.length === 0 || choice.name === tool.name));
  if (!needed) return kept.length === all.length ? undefined : { tools: kept };
  const sentence = `The tool \`${needed.type}\` is built into Anthropic's own API; GitHub Copilot does not offer it. Leave it out, or bring a tool of your own.`;
  throw new ProxyError("invalid_request", sentence, { param: "tools", code: "unsupported_value" });
}

const isServerTool = ({ type }: JsonObject): boolean =>
  typeof type === "string" && type !== "custom" && !type.startsWith("tool_search_tool_");

const nameOfTool = ({ type }: JsonObject): string => String(type);

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

function toolFields(body: JsonObject): JsonObject | undefined {
  if (usesToolSearch(body)) return undefined;
  return eachTool(body, (tool) => without(tool, ["strict", "input_examples", "allowed_callers"]));
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
