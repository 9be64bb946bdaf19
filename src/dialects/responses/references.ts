/**
 * References to stored items, which the AI SDK's OpenAI provider sends in place of what was said unless it is told `store:
 * false` (@ai-sdk/openai 4.0). GitHub Copilot stores nothing.
 */
import { isObject } from "../../lib/json";
import { jsonOf, type SseFrame } from "../../lib/net/stream/sse";
import type { JsonObject } from "../hub/conversation";
import { mapped, objectsAmong } from "../hub/lists";
import type { ItemReference } from "../overview";

/** OpenAI's type is optional: an item with an id alone is a reference too. */
const isReference = (item: unknown): item is JsonObject & { id: string } =>
  isObject(item) &&
  typeof item.id === "string" &&
  (item.type === "item_reference" || Object.keys(item).every((key) => key === "id"));

/** The references that may stand for what was said: ids of reasoning, in OpenAI's form and dragoman's, do not. */
export function references({ input }: JsonObject): ItemReference[] {
  const found: ItemReference[] = [];
  const items: unknown[] = Array.isArray(input) ? input : [];
  for (let at = 0; at < items.length; at++) {
    const item = items[at];
    if (isReference(item) && !item.id.startsWith("rs_")) found.push({ id: item.id, param: `input[${at}]` });
  }
  return found;
}

/**
 * The request with the items that its references stand for, reasoning too.
 * @param find The item of this id; undefined where it is not known, and the reference stays.
 * @returns The very same body if no item was found.
 */
export function withItems(body: JsonObject, find: (id: string) => JsonObject | undefined): JsonObject {
  const { input } = body;
  if (!Array.isArray(input) || !input.some(isReference)) return body;
  const found = mapped(input, (item: unknown) => (isReference(item) ? (find(item.id) ?? item) : item));
  return found === input ? body : { ...body, input: found };
}

/** The item that a frame of a stream completes. */
export function itemIn(frame: SseFrame): JsonObject | undefined {
  const isDone = frame.event === undefined ? frame.data?.includes(`"${itemDone}"`) : frame.event === itemDone;
  const event = isDone ? jsonOf(frame) : undefined;
  return isObject(event) && event.type === itemDone && isObject(event.item) ? event.item : undefined;
}

const itemDone = "response.output_item.done";

/** The items of a full reply. */
export const itemsIn = ({ output }: JsonObject): JsonObject[] => objectsAmong(output);

/** The item; undefined for a reference. */
export const withoutReference = (item: JsonObject): JsonObject | undefined => (isReference(item) ? undefined : item);
