/** Cache marks for a client whose dialect has none: without them, Claude reads the whole prompt anew in every turn. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { maxCacheMarks } from "./limits";
import { blocksOf, eachMark, isThinking, objectsIn } from "./traverse";

/**
 * Marks the newest message, the instructions, the tools, and the user's message before the newest, which the previous
 * request has written to the cache. A client's own marks are kept and count. The same body if nothing is marked.
 * @param hour Tools and instructions, which come first and hardly change, stay in the cache for an hour, as VS Code asks
 * (2026-09). A mark of an hour may not follow one of five minutes, so all stay at that if the client has marks of its own.
 */
export function addCacheMarks(body: JsonObject, hour = false): JsonObject {
  let free = maxCacheMarks;
  eachMark(body, (holder) => {
    free--;
    return holder;
  });
  const lasting = hour && free === maxCacheMarks ? { ttl: "1h" } : {};
  const messages = objectsIn(body.messages);
  const newest = messages.findLastIndex(isUsers);
  const before = messages.findLastIndex((message, at) => at < newest && isUsers(message));
  const places: ((from: JsonObject) => JsonObject | undefined)[] = [
    (from) => markMessage(from, newest),
    (from) => markLast("system", blocksOf(from.system), lasting),
    (from) => markLast("tools", objectsIn(from.tools), lasting),
    (from) => markMessage(from, before),
  ];
  let marked = body;
  for (const place of places) {
    const changes = free > 0 ? place(marked) : undefined;
    if (!changes) continue;
    marked = { ...marked, ...changes };
    free--;
  }
  return marked;
}

const isUsers = ({ role }: JsonObject): boolean => role === "user";

function markMessage({ messages }: JsonObject, at: number): JsonObject | undefined {
  const all = objectsIn(messages);
  const message = all[at];
  const changes = message && markLast("content", blocksOf(message.content));
  return changes && { messages: all.with(at, { ...message, ...changes }) };
}

/** Undefined if it has a mark, or if there is none that can have one. */
function markLast(key: string, list: JsonObject[], lasting: { ttl?: string } = {}): JsonObject | undefined {
  const at = list.findLastIndex(canBeMarked);
  const last = list[at];
  if (!last || isObject(last.cache_control)) return undefined;
  return { [key]: list.with(at, { ...last, cache_control: { type: "ephemeral", ...lasting } }) };
}

const canBeMarked = (block: JsonObject): boolean => !isThinking(block) && block.defer_loading !== true;
