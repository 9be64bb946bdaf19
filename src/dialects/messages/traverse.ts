/** Functions that map parts of a request. Unchanged objects stay the same object; malformed ones are skipped. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { filled } from "../hub/json";
import { mapped } from "../hub/lists";

/** The array, if it holds objects only; a malformed request is left for the upstream to refuse. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) && value.every(isObject) ? value : [];
}

export function blocksOf(content: unknown): JsonObject[] {
  return typeof content === "string" ? (content === "" ? [] : [textBlock(content)]) : objectsIn(content);
}

export const textBlock = (text: string): JsonObject => ({ type: "text", text });

export const isThinking = ({ type }: JsonObject): boolean => type === "thinking" || type === "redacted_thinking";

/** The line of Claude Code's system prompt that names its version: it changes with every prompt. */
const billingLine = /^\s*x-anthropic-billing-header:[^\n]*\n?/i;

/** Whether a text of the system prompt begins with that line. */
export const isBilled = (text: unknown): boolean => typeof text === "string" && billingLine.test(text);

/** The system prompt without that line: the same value if it has none, undefined if nothing else is in it. */
export function withoutBilling(system: unknown): unknown {
  if (typeof system === "string") return isBilled(system) ? system.replace(billingLine, "") || undefined : system;
  const blocks = objectsIn(system);
  const kept = mapped(blocks, (block) => {
    if (!isBilled(block.text)) return block;
    const text = String(block.text).replace(billingLine, "");
    return /\S/.test(text) ? { ...block, text } : undefined;
  });
  return kept === blocks ? system : kept.length === 0 ? undefined : kept;
}

export function changed(key: string, before: JsonObject[], after: JsonObject[]): JsonObject | undefined {
  return before === after ? undefined : { [key]: after };
}

export function eachTool(body: JsonObject, change: (tool: JsonObject) => JsonObject): JsonObject | undefined {
  const all = objectsIn(body.tools);
  return changed("tools", all, mapped(all, change));
}

/** Maps each block of each message; a message without blocks is removed. */
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

/** Maps each block inside tool results. */
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

/** Maps each tool and block with a cache mark, in the order of the prompt. */
export function eachMark(body: JsonObject, change: (holder: JsonObject) => JsonObject): JsonObject | undefined {
  const inOrder = (holder: JsonObject) => (isObject(holder.cache_control) ? change(holder) : holder);
  const system = objectsIn(body.system);
  return filled({
    ...eachTool(body, inOrder),
    ...changed("system", system, mapped(system, inOrder)),
    ...eachBlock(body, inOrder),
  });
}
