/**
 * Fields of a chat message, part, call or tool that the hub does not read. They are kept in the OpenAI extras under a key
 * of their own, because the responses dialect reads the other OpenAI extras and would be refused with these.
 */
import type { JsonObject } from "./conversation";

/** The key; no API has a field of this name. */
const key = "chat members";

/** OpenAI extras that hold these fields as chat-only fields. */
export const asChatExtras = (members: JsonObject | undefined): JsonObject =>
  members && Object.keys(members).length > 0 ? { [key]: members } : {};

/** The chat-only fields of OpenAI extras. */
export function chatExtras(extras: JsonObject): JsonObject {
  const members = extras[key];
  return typeof members === "object" && members !== null ? (members as JsonObject) : {};
}

/** OpenAI extras without the chat-only fields. */
export function sharedExtras({ [key]: _, ...shared }: JsonObject): JsonObject {
  return shared;
}
