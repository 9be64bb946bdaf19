/**
 * What Copilot's responses endpoint refuses or misreads, and what is sent instead: one rule for each case, applied in
 * this order to passed-through and to translated requests alike.
 */

import { quoted, words } from "../../lib/errors";
import { isObject, numberIn } from "../../lib/json";
import { longestId } from "../hub/call-pairs";
import type { JsonObject } from "../hub/conversation";
import { shortId } from "../hub/ids";
import { filled, omitUndefined, refuse, textIn, without } from "../hub/json";
import { mapObjects } from "../hub/lists";
import type { ModelFacts } from "../hub/model";
import { effortOf } from "../hub/reasoning";
import { emptyTools, modelName, onList, type RuleRow, requestRules, rulesNamed } from "../hub/rules";
import { searches, searchOfType } from "../hub/searches";
import { isPacked } from "../hub/signature";
import { noteOfImage, withFileName } from "../openai";
import { callNamespace, callPairs, pairTypes, repeatedCallIds, repeatedItemIds, typeOf } from "./call-rules";
import { readSummaries } from "./compaction";
import { isOwnId } from "./ids";
import { withoutReference } from "./references";
import { searchAsCall } from "./server-tools";

/** What a client keeps in its messages for itself. */
const { responses: webSearch } = searches["web-search"];
const clientMetadata = "internal_chat_message_metadata_passthrough";

export const rules: Record<string, RuleRow> = {
  "model-name": modelName,
  store: [(body) => (body.store === false ? undefined : { store: false })],
  "include-reasoning": [includeReasoning],
  "service-tier": ["service_tier", (body) => ("service_tier" in body ? { service_tier: undefined } : undefined)],
  background: ["background", (body) => ("background" in body ? { background: undefined } : undefined)],
  "image-generation": ["tools", "tool_choice", (body) => withoutTools(body, isImageGeneration)],
  "web-search": [
    ...["tools", "tool_choice"],
    (body, _, options) => (options.webSearch ? undefined : withoutTools(body, isWebSearch)),
  ],
  "empty-tools": emptyTools,
  "strict-default": ["function", (body) => eachTool(body, strictSaid)],
  "namespace-description": ["namespace", namespaceDescription],
  summary: ["compaction", onList("input", readSummaries)],
  "item-reference": ["id", (body) => eachItem(body, withoutReference)],
  "file-name": ["input_file", (body) => eachItem(body, (item) => withParts(item, named))],
  "image-type": [
    "input_image",
    (body, model) => eachItem(body, (item) => withParts(item, (part) => seen(part, model))),
  ],
  "foreign-thinking": ["encrypted_content", (body) => eachItem(body, (item) => (isForeign(item) ? undefined : item))],
  "unsigned-reasoning": ["reasoning", (body) => eachItem(body, (item) => (isUnsigned(item) ? undefined : item))],
  "call-ids": ["call_id", (body) => eachItem(body, withShortCallId)],
  "repeated-call-ids": ["function_call", "custom_tool_call", onList("input", repeatedCallIds)],
  "own-searches": [webSearch.call, onList("input", ownSearches)],
  "call-pairs": [...pairTypes, onList("input", callPairs)],
  "call-namespace": ["namespace", onList("input", (input, _model, _options, { tools }) => callNamespace(input, tools))],
  "item-ids": ["id", (body) => eachItem(body, (item) => (hasIdleId(item) ? without(item, ["id"]) : item))],
  "repeated-item-ids": ["id", onList("input", repeatedItemIds)],
  "message-metadata": [clientMetadata, (body) => eachItem(body, (item) => without(item, [clientMetadata]))],
  "max-tokens-limit": ["max_output_tokens", maxTokensLimit],
  effort: ["reasoning", effort],
};

/** What a rule removed, for the client to know; rules without an entry change nothing for the client. */
const dropped: Record<string, (before: JsonObject, after: JsonObject) => string[]> = {
  store: (before) => (before.store === true ? ["store"] : []),
  "service-tier": (before) => (before.service_tier == null ? [] : ["service_tier"]),
  "image-generation": () => ["image_generation"],
  "web-search": () => ["web_search"],
  "item-reference": () => ["item_reference"],
  "image-type": () => ["image"],
  "foreign-thinking": () => ["thinking"],
  "unsigned-reasoning": () => ["thinking"],
  "call-pairs": () => ["calls and results without each other"],
  "max-tokens-limit": (_, after) => [`max_tokens set to ${after.max_output_tokens}`],
  effort: (before, after) => [
    `effort ${effortIn(before)} ${effortIn(after) ? `set to ${effortIn(after)}` : "left out"}`,
  ],
};

export const { applyRules, fixRequest } = requestRules({
  rules,
  dropped,
  providerRules: rulesNamed(rules, ["model-name", "web-search", "foreign-thinking", "call-ids"]),
});

/** Refuses fields that need stored replies, or a reply that outlives its request. */
export function refuseStored(body: JsonObject): void {
  const nothingStored = "Nothing is stored here: send the whole input with every request.";
  if (body.previous_response_id != null)
    refuse(
      "previous_response_id",
      `The reply that \`previous_response_id\` names is not known. ${nothingStored}`,
      "previous_response_not_found",
    );
  for (const param of ["conversation", "prompt"])
    if (body[param] != null)
      refuse(param, `What \`${param}\` names is not known. ${nothingStored}`, "unsupported_value");
  if (body.background === true) {
    const sentence = "`background` cannot be true: a reply lives as long as its request. Leave the field out.";
    refuse("background", sentence, "unsupported_value");
  }
}

/** Without storage, the encrypted content of reasoning must be requested with `include`. */
function includeReasoning({ include }: JsonObject): JsonObject | undefined {
  const list: unknown[] = Array.isArray(include) ? include : [];
  const proof = "reasoning.encrypted_content";
  return list.includes(proof) ? undefined : { include: [...list, proof] };
}

const isImageGeneration = (tool: JsonObject): boolean =>
  typeOf(tool) === "image_generation" || (typeOf(tool) === "namespace" && tool.name === "image_gen");

/** A web search tool, of any version. */
const isWebSearch = (tool: JsonObject): boolean => searchOfType(tool.type, "responses") === "web-search";

/** Removes these tools everywhere in the request. */
function withoutTools(body: JsonObject, isUnwanted: (tool: JsonObject) => boolean): JsonObject | undefined {
  const changes = eachTool(body, (tool) => (isUnwanted(tool) ? undefined : tool));
  const { tool_choice: choice } = body;
  const forced =
    (isObject(choice) && isUnwanted(choice)) || (choice === "required" && changes && isToolless(body, changes));
  if (!forced) return changes;
  return refuseForced(isObject(choice) ? typeOf(choice) : "the only one that was given");
}

/** Throws because a tool that must be called is not available. */
export function refuseForced(tool: string): never {
  const sentence = words`\`tool_choice\` asks for a tool that is not available here: ${quoted(tool)}.`;
  refuse("tool_choice", sentence, "unsupported_value");
}

const isToolless = (body: JsonObject, changes: JsonObject): boolean => {
  const { tools, input } = { ...body, ...changes };
  return tools === undefined && !(Array.isArray(input) && input.some((item) => typeOf(item) === "additional_tools"));
};

/** A missing `strict` means true, and the upstream would rewrite the client's schema. */
const strictSaid = (tool: JsonObject): JsonObject =>
  typeOf(tool) === "function" && typeof tool.strict !== "boolean" ? { ...tool, strict: false } : tool;

const withShortCallId = (item: JsonObject): JsonObject =>
  typeof item.call_id === "string" && item.call_id.length > longestId
    ? { ...item, call_id: shortId(item.call_id, longestId) }
    : item;

/** The item with the parts of its content or output as `change` makes them; the same item if none changes. */
function withParts(item: JsonObject, change: (part: JsonObject) => JsonObject): JsonObject {
  const set: JsonObject = {};
  for (const key of ["content", "output"]) {
    const parts = item[key];
    if (!Array.isArray(parts)) continue;
    const changed = mapObjects(parts, change);
    if (changed !== parts) set[key] = changed;
  }
  return Object.keys(set).length === 0 ? item : { ...item, ...set };
}

const named = (part: JsonObject): JsonObject => (typeOf(part) === "input_file" ? withFileName(part) : part);

function seen(part: JsonObject, model: ModelFacts): JsonObject {
  const note = typeOf(part) === "input_image" ? noteOfImage(part.image_url, model) : undefined;
  return note === undefined ? part : { type: "input_text", text: note };
}

/**
 * A namespace without a description is refused: `empty_string`, "Invalid 'input[0].tools[0].description'". Codex sends such
 * ones for MCP servers that say nothing of themselves (0.147, seen 2026-08).
 */
function namespaceDescription(body: JsonObject): JsonObject | undefined {
  const described: Change = (tool) =>
    typeOf(tool) === "namespace" && !textIn(tool.description).trim() ? { ...tool, description: tool.name } : tool;
  const inRequest = eachTool(body, described);
  const found = eachItem({ ...body, ...inRequest }, (item) => {
    if (typeOf(item) !== searches["tool-search"].responses.output || !Array.isArray(item.tools)) return item;
    const tools = mapObjects(item.tools, described);
    return tools === item.tools ? item : { ...item, tools };
  });
  return inRequest || found ? { ...inRequest, ...found } : undefined;
}

/** A search that ran here is no item of the upstream's, and has an id that it does not know: it was a function's call. */
function ownSearches(input: unknown[]): unknown[] {
  const isOwn = (item: unknown): item is JsonObject =>
    typeOf(item) === webSearch.call && isOwnId((item as JsonObject).id);
  return input.flatMap((item) => (isOwn(item) ? searchAsCall(item) : [item]));
}

/** Reasoning of another dialect, whose signature dragoman packed. */
const isForeign = (item: JsonObject): boolean => typeOf(item) === "reasoning" && isPacked(item.encrypted_content);

/** Reasoning without encrypted content: the upstream stores nothing, so it could not be found. */
const isUnsigned = (item: JsonObject): boolean => typeOf(item) === "reasoning" && !item.encrypted_content;

/** Calls are matched by `call_id`; an `id` of the client's or dragoman's making is refused. */
const hasIdleId = (item: JsonObject): boolean =>
  isOwnId(item.id) || ("id" in item && (idleIds.has(typeOf(item)) || (!("type" in item) && "role" in item)));

const idleIds = new Set([
  "message",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
]);

function maxTokensLimit(body: JsonObject, model: ModelFacts): JsonObject | undefined {
  const requested = numberIn(body.max_output_tokens);
  if (requested === undefined) return undefined;
  const { output = Number.POSITIVE_INFINITY, fullOutput = Number.POSITIVE_INFINITY } = model.limits;
  // OpenAI refuses fewer than 16.
  const least = model.vendor.includes("OpenAI") ? 16 : 1;
  const limited = Math.max(least, Math.min(requested, output, body.stream === true ? output : fullOutput));
  return limited === requested ? undefined : { max_output_tokens: limited };
}

function effort({ reasoning }: JsonObject, model: ModelFacts): JsonObject | undefined {
  if (!isObject(reasoning) || typeof reasoning.effort !== "string") return undefined;
  const able = effortOf({ effort: reasoning.effort }, model);
  if (able === reasoning.effort) return undefined;
  return { reasoning: filled(omitUndefined({ ...reasoning, effort: able })) };
}

const effortIn = ({ reasoning }: JsonObject): string | undefined =>
  isObject(reasoning) && typeof reasoning.effort === "string" ? reasoning.effort : undefined;

type Change = (object: JsonObject) => JsonObject | undefined;

/** Maps the items of the input; undefined if nothing changed. */
function eachItem(body: JsonObject, change: Change): JsonObject | undefined {
  const input = Array.isArray(body.input) ? mapObjects(body.input, change) : body.input;
  return input === body.input ? undefined : { input };
}

/** Maps all tools: of the request, of namespaces and of `additional_tools` items. An emptied list is removed. */
function eachTool(body: JsonObject, change: Change): JsonObject | undefined {
  const inList: Change = (holder) => {
    if (!Array.isArray(holder.tools)) return holder;
    const tools = mapObjects(holder.tools, inTool);
    return tools === holder.tools ? holder : tools.length === 0 ? undefined : { ...holder, tools };
  };
  const inTool: Change = (tool) => {
    const changed = change(tool);
    return changed && typeOf(changed) === "namespace" ? inList(changed) : changed;
  };
  const changes = eachItem(body, (item) => (typeOf(item) === "additional_tools" ? inList(item) : item));
  const holder = inList({ tools: body.tools });
  return holder?.tools === body.tools && holder ? changes : { ...changes, tools: holder?.tools };
}

/**
 * Removes what may be bound to another account: reasoning and item ids. A compaction stays, though it may be another
 * account's: it is the conversation itself, and without it the model would answer another one.
 */
export function repairForeignItems(body: JsonObject, isForeign: (mark: string) => boolean): JsonObject {
  const changes = eachItem(body, (item) => {
    const mark = typeOf(item) === "reasoning" ? textIn(item.encrypted_content) : textIn(item.id);
    if (typeOf(item) === "reasoning") return isForeign(mark) ? undefined : item;
    return mark !== "" && isForeign(mark) ? without(item, ["id"]) : item;
  });
  return changes ? { ...body, ...changes } : body;
}
