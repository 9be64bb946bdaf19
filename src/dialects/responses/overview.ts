/** The roles in a responses request, and whether it contains an image. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { type Overview, type OverviewMessage, overviewOf, type PromptHead } from "../overview";

const speakers = new Map<unknown, OverviewMessage["by"]>([
  ["system", "system"],
  ["developer", "system"],
  ["assistant", "model"],
]);

const types = {
  text: new Set(["input_text", "output_text", "text"]),
  image: new Set(["input_image", "computer_screenshot"]),
};

export function overview({ input }: JsonObject): Overview {
  if (typeof input === "string") return overviewOf([{ by: "user", content: input }], types);
  return overviewOf((Array.isArray(input) ? input : []).filter(isObject).flatMap(spokenIn), types);
}

/** A compaction item ends what was said before it; if nothing follows, the model goes on as after a tool's result. */
const spokenIn = (item: JsonObject): OverviewMessage[] =>
  item.type === "compaction" ? [read(item), { by: "tool", content: undefined }] : [read(item)];

/**
 * Messages have a role. Of the other items of the OpenAI SDK's ResponseInputItem, those whose type ends in `_output`,
 * and the response to an MCP approval request, follow a call; the rest is the model's.
 */
function read({ type, role, content, output }: JsonObject): OverviewMessage {
  if (role !== undefined) return { by: speakers.get(role) ?? "user", content };
  if (typeof type !== "string" || type === "message") return { by: "user", content };
  if (/_(?:output|response)$/.test(type)) return { by: "tool", content: output };
  return { by: settings.has(type) ? "system" : "model", content };
}

/** Items without a speaker. */
const settings = new Set(["additional_tools", "compaction_trigger"]);

export function promptHead({ tools, instructions, input }: JsonObject): PromptHead {
  if (!Array.isArray(input)) return { tools, system: instructions, first: input };
  const items = input.filter(isObject);
  const spoken = items.findIndex((item) => read(item).by !== "system");
  const leading = items.slice(0, spoken === -1 ? items.length : spoken);
  return { tools, system: [instructions, ...leading], first: items[spoken] };
}
