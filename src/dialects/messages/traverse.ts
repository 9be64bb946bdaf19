/** Going through a request's JSON: what nothing was changed in stays the very same object, and what is malformed is passed by. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { omit } from "../hub/json";

/** The array, when it holds objects only: a request that is malformed is left to the upstream to refuse. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) && value.every(isObject) ? value : [];
}

export function blocksOf(content: unknown): JsonObject[] {
  return typeof content === "string" ? (content === "" ? [] : [textBlock(content)]) : objectsIn(content);
}

export const textBlock = (text: string): JsonObject => ({ type: "text", text });

export const isThinking = ({ type }: JsonObject): boolean => type === "thinking" || type === "redacted_thinking";

export const filled = (object: JsonObject): JsonObject | undefined =>
  Object.keys(object).length === 0 ? undefined : object;

/** The very same object when it has none of these members. */
export function without(object: JsonObject, keys: string[]): JsonObject {
  return keys.some((key) => Object.hasOwn(object, key)) ? (omit(object, new Set(keys)) ?? {}) : object;
}

/** The very same list when every item stays what it is; undefined drops an item. */
export function mapped(
  items: JsonObject[],
  change: (item: JsonObject, index: number) => JsonObject | undefined,
): JsonObject[] {
  const results = items.flatMap<JsonObject>((item, index) => change(item, index) ?? []);
  return results.length === items.length && results.every((item, index) => item === items[index]) ? items : results;
}

export function changed(key: string, before: JsonObject[], after: JsonObject[]): JsonObject | undefined {
  return before === after ? undefined : { [key]: after };
}

export function eachTool(body: JsonObject, change: (tool: JsonObject) => JsonObject): JsonObject | undefined {
  const all = objectsIn(body.tools);
  return changed("tools", all, mapped(all, change));
}

/** Each block of each message; a message that loses its last block goes too. */
export function eachBlock(
  body: JsonObject,
  change: (block: JsonObject, message: JsonObject, index: number) => JsonObject | undefined,
): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  const after = mapped(messages, (message, index) => {
    const content = objectsIn(message.content);
    const kept = mapped(content, (block) => change(block, message, index));
    return kept === content ? message : kept.length === 0 ? undefined : { ...message, content: kept };
  });
  return changed("messages", messages, after);
}

/** Each block inside the tool results. */
export function eachResultBlock(
  body: JsonObject,
  change: (inner: JsonObject) => JsonObject | undefined,
): JsonObject | undefined {
  return eachBlock(body, (block) => {
    const content = block.type === "tool_result" ? objectsIn(block.content) : [];
    const kept = mapped(content, change);
    return kept === content ? block : { ...block, content: kept };
  });
}

/** Each tool and block that bears a cache mark, in the order of the prompt. */
export function eachMark(body: JsonObject, change: (holder: JsonObject) => JsonObject): JsonObject | undefined {
  const inOrder = (holder: JsonObject) => (isObject(holder.cache_control) ? change(holder) : holder);
  const system = objectsIn(body.system);
  return filled({
    ...eachTool(body, inOrder),
    ...changed("system", system, mapped(system, inOrder)),
    ...eachBlock(body, inOrder),
  });
}
