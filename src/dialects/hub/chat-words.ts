/**
 * Members of a chat message, part, call or tool that the hub does not read. They ride in the family's bag, but apart: the
 * responses dialect shares the family's words of a request, and refuses what its own items do not know.
 */
import type { JsonObject } from "./conversation";

/** Where they ride: no member of any wire is spelt so. */
const key = "chat members";

/** A bag's members: these apart. */
export const apart = (members: JsonObject | undefined): JsonObject =>
  members && Object.keys(members).length > 0 ? { [key]: members } : {};

/** What was put apart. */
export function chatWords(extras: JsonObject): JsonObject {
  const members = extras[key];
  return typeof members === "object" && members !== null ? (members as JsonObject) : {};
}

/** The bag without them. */
export function sharedWords({ [key]: _, ...shared }: JsonObject): JsonObject {
  return shared;
}
