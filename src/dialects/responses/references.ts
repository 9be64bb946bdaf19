/**
 * References to stored items, which the AI SDK's OpenAI provider sends in place of what was said unless it is told `store:
 * false` (@ai-sdk/openai 4.0). Nothing is stored here, nor at GitHub Copilot.
 */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import type { ItemReference } from "../overview";

/** OpenAI's type is optional: an item with an id alone is a reference too. */
const isReference = (item: unknown): item is JsonObject & { id: string } =>
  isObject(item) &&
  typeof item.id === "string" &&
  (item.type === "item_reference" || Object.keys(item).every((key) => key === "id"));

/** The references that may stand for what was said: ids of reasoning, in OpenAI's form and dragoman's, do not. */
export const references = ({ input }: JsonObject): ItemReference[] =>
  (Array.isArray(input) ? input : []).flatMap((item: unknown, index) =>
    isReference(item) && !item.id.startsWith("rs_") ? [{ id: item.id, param: `input[${index}]` }] : [],
  );

/** The item; undefined for a reference. */
export const withoutReference = (item: JsonObject): JsonObject | undefined => (isReference(item) ? undefined : item);
