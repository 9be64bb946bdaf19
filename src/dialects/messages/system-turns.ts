/**
 * What only system messages within a conversation can say: which tools come and go, with how much effort to answer, and how
 * long a reminder stays. Anthropic's API reads each with a beta of its own; every upstream knows what the request itself says.
 * Source: Anthropic's pages "Mid-conversation system messages and tool changes" and "Per-message effort", and its SDK 1.12.0
 * (2026-10).
 */
import { isObject } from "../../lib/json";
import type { TranslationOptions } from "../codec";
import type { JsonObject } from "../hub/conversation";
import { omitUndefined, without } from "../hub/json";
import { mapped } from "../hub/lists";
import type { ModelFacts } from "../hub/model";
import type { RuleRow } from "../hub/rules";
import { isRefused } from "./betas";
import { blocksOf, changed, isThinking, objectsIn } from "./traverse";

/** Applied in this order. */
export const systemTurnRules = {
  "tool-changes": ["tool_addition", "tool_removal", "tool_changes", toolChanges],
  "message-output-config": ["output_config", messageOutputConfig],
  "cleared-reminders": ["clear_at", clearedReminders],
} satisfies Record<string, RuleRow>;

/** The request without them: what they say is said by the request itself. The same object if it has none. */
export function withoutSystemTurns(body: JsonObject): JsonObject {
  let plain = body;
  for (const change of [toolChanges, effortOfRequest, clearedReminders]) {
    const changes = change(plain);
    if (changes) plain = omitUndefined({ ...plain, ...changes });
  }
  return plain;
}

const isToolChange = ({ type }: JsonObject): boolean => type === "tool_addition" || type === "tool_removal";

/**
 * The tools that the changes in the conversation leave: those that were announced are no longer deferred, or join the list.
 * A compacted beginning lists the changes that were made in it.
 */
function toolChanges({ tools, messages }: JsonObject): JsonObject | undefined {
  const all = objectsIn(messages);
  const changes: JsonObject[] = [];
  const kept = mapped(all, (message) => {
    const content = objectsIn(message.content);
    const left = withoutToolChanges(content, changes);
    if (left === content) return message;
    return left.length === 0 && message.output_config === undefined ? undefined : { ...message, content: left };
  });
  return kept === all ? undefined : { messages: kept, tools: changedTools(objectsIn(tools), changes) };
}

/** @param changes Gets the changes that were taken out; a cache mark of one moves to the block before it. */
function withoutToolChanges(content: JsonObject[], changes: JsonObject[]): JsonObject[] {
  const isHolder = (block: JsonObject) => block.type === "compaction" && "tool_changes" in block;
  if (!content.some((block) => isToolChange(block) || isHolder(block))) return content;
  const kept: JsonObject[] = [];
  for (const block of content) {
    if (isHolder(block)) for (const change of objectsIn(block.tool_changes)) changes.push(change);
    if (!isToolChange(block)) {
      kept.push(isHolder(block) ? without(block, ["tool_changes"]) : block);
      continue;
    }
    changes.push(block);
    const last = kept.at(-1);
    if (last && block.cache_control && !isThinking(last))
      kept[kept.length - 1] = { ...last, cache_control: block.cache_control };
  }
  return kept;
}

/** Those that were announced come last and in this order, so that the prompt's beginning stays the same. */
function changedTools(tools: JsonObject[], changes: JsonObject[]): JsonObject[] {
  const named = tools.map((tool) => [tool.name ?? tool, tool] as const);
  const known = new Map<unknown, JsonObject>(named);
  const offered = new Map<unknown, JsonObject>(named);
  for (const { type, tool } of changes) {
    if (!isObject(tool)) continue;
    const isByValue = tool.type === "tool_definition" && isObject(tool.definition);
    if (!isByValue && tool.type !== "tool_reference") continue;
    const definition = isByValue ? (tool.definition as JsonObject) : known.get(tool.name);
    const name = definition?.name ?? tool.name;
    if (type === "tool_removal") offered.delete(name);
    else if (definition && (isByValue || definition.defer_loading === true || !offered.has(name))) {
      known.set(name, definition);
      offered.delete(name);
      offered.set(name, without(definition, ["defer_loading"]));
    }
  }
  return [...offered.values()];
}

/**
 * "messages.N.output_config: Extra inputs are not permitted". An effort counts from the person's message on that it follows;
 * anywhere else, such as after a tool's result, from the person's next one on.
 */
function messageOutputConfig(
  body: JsonObject,
  { supports }: ModelFacts,
  options: TranslationOptions,
): JsonObject | undefined {
  const mayStay = supports.turnEfforts && supports.systemTurns && !isRefused("messages[].output_config", options);
  return mayStay && areEffortsPlaced(body) ? undefined : effortOfRequest(body);
}

function areEffortsPlaced({ messages }: JsonObject): boolean {
  const all = objectsIn(messages);
  const placed = placedSystemTurns(all);
  return all.every((message) => message.output_config === undefined || placed.has(message));
}

/**
 * The system messages that a model takes where they are: of texts, after a user's message, and before the model's or at the
 * end of the conversation.
 */
export function placedSystemTurns(messages: readonly JsonObject[]): ReadonlySet<JsonObject> {
  const placed = new Set<JsonObject>();
  let group: JsonObject[] = [];
  let before: unknown;
  const close = (next: unknown) => {
    if (before === "user" && next !== "user") for (const message of group) placed.add(message);
    group = [];
  };
  for (const message of messages) {
    if (message.role === "system") {
      if (blocksOf(message.content).every(({ type }) => type === "text")) group.push(message);
      else before = undefined;
    } else {
      close(message.role);
      before = message.role;
    }
  }
  close(undefined);
  return placed;
}

/** The request with the effort that is in force as its own. */
function effortOfRequest(body: JsonObject): JsonObject | undefined {
  const all = objectsIn(body.messages);
  let effort: string | undefined;
  let next: string | undefined;
  let isAsked = false;
  const kept = mapped(all, (message) => {
    const { role, content, output_config: config } = message;
    const said = isObject(config) && typeof config.effort === "string" ? config.effort : undefined;
    if (role !== "system") {
      isAsked = role === "user" && blocksOf(content).some(({ type }) => type !== "tool_result");
      if (isAsked) effort = next ?? effort;
      if (isAsked) next = undefined;
    } else if (isAsked) effort = said ?? effort;
    else next = said ?? next;
    if (!("output_config" in message)) return message;
    return role === "system" && blocksOf(content).length === 0 ? undefined : without(message, ["output_config"]);
  });
  const changes = changed("messages", all, kept);
  if (!changes || effort === undefined) return changes;
  return { ...changes, output_config: { ...(isObject(body.output_config) ? body.output_config : {}), effort } };
}

/** A reminder that is to be cleared is shown until there is a later message of the user. */
function clearedReminders({ messages }: JsonObject): JsonObject | undefined {
  const all = objectsIn(messages);
  const lastUser = all.findLastIndex(({ role }) => role === "user");
  const kept = mapped(all, (message, at) => {
    if (message.role !== "system" || !("clear_at" in message)) return message;
    const left = without(message, ["clear_at"]);
    if (message.clear_at !== "next_user_message" || at > lastUser) return left;
    return message.output_config === undefined ? undefined : { ...left, content: [] };
  });
  return changed("messages", all, kept);
}
