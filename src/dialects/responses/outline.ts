/** Who says what in a responses request. */
import type { JsonObject } from "../hub/conversation";
import { objectsAmong } from "../hub/lists";
import { type Outline, type OutlineMessage, speakerOf } from "../overview";

export const outline = ({ tools, instructions, input }: JsonObject): Outline => ({
  tools,
  system: () => instructions,
  messages: typeof input === "string" ? [{ by: "user", content: input }] : objectsAmong(input).flatMap(spokenIn),
});

/** A compaction item ends what was said before it; if nothing follows, the model goes on as after a tool's result. */
const spokenIn = (item: JsonObject): OutlineMessage[] =>
  item.type === "compaction" ? [read(item), { by: "tool", content: undefined }] : [read(item)];

/**
 * Messages have a role. Of the other items of the OpenAI SDK's ResponseInputItem, those whose type ends in `_output`,
 * and the response to an MCP approval request, follow a call; the rest is the model's.
 */
function read({ type, role, content, output, tools }: JsonObject): OutlineMessage {
  if (role !== undefined) return { by: speakerOf(role), content };
  if (typeof type !== "string" || type === "message") return { by: "user", content };
  if (/_(?:output|response)$/.test(type)) return { by: "tool", content: output };
  return settings.has(type) ? { by: "system", content: tools } : { by: "model", content };
}

/** Items without a speaker: a list of tools, and the request for a summary. */
const settings = new Set(["additional_tools", "compaction_trigger"]);
