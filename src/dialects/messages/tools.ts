/** Tools and `tool_choice` in the messages dialect. */

import { isObject } from "../../lib/json";
import type { Conversation, ForeignTool, FreeformTool, FunctionTool, JsonObject, Tool } from "../hub/conversation";
import { Fields } from "../hub/fields";
import { nameOf } from "../hub/foreign";
import { omitUndefined, refuse } from "../hub/json";
import type { Notes } from "../hub/notes";
import { dropExtras, nestedExtras, restoreCacheMark, withCacheMark } from "./extras";
import { decodeServerTool } from "./server-tools";

// ── Tables ──

const toolChoiceOf = new Map([
  ["auto", "auto"],
  ["any", "required"],
  ["none", "none"],
] as const);
const toolChoiceWords = { auto: "auto", required: "any", none: "none" } as const;

// ── Decode ──

/** @throws ProxyError `invalid_request` naming the field. */
export function decodeTool(value: unknown, index: number): Tool {
  const tool = Fields.at(value, `tools[${index}]`);
  const type = tool.any("type");
  if (type != null && type !== "custom") return decodeServerTool(tool);
  return {
    kind: "function",
    name: tool.text("name"),
    description: tool.optionalText("description"),
    schema: tool.any("input_schema") ?? undefined,
    ...(tool.optionalBoolean("strict") ? { strict: true } : {}),
    ...(tool.object.defer_loading === true ? { isDeferred: true } : {}),
    ...withCacheMark(tool),
  };
}

/** The choice also holds `disable_parallel_tool_use`; what the hub does not have becomes extras. */
export function decodeChoice(
  value: unknown,
): Pick<Conversation, "toolChoice" | "parallelTools"> & { extras?: JsonObject } {
  if (value == null) return {};
  const choice = Fields.at(value, "tool_choice");
  const type = choice.any("type");
  const isSingle = choice.optionalBoolean("disable_parallel_tool_use");
  const name = type === "tool" ? choice.text("name") : undefined;
  choice.skip("name");
  const meta = { ...(isSingle ? { parallelTools: false } : {}), extras: nestedExtras("tool_choice", choice) };
  if (name !== undefined) return { toolChoice: { name }, ...meta };
  for (const [word, toolChoice] of toolChoiceOf) if (word === type) return { toolChoice, ...meta };
  return { extras: { tool_choice: choice.object } };
}

// ── Encode ──

/**
 * Undefined if there are none.
 * @throws ProxyError `invalid_request` if a tool that is left out must be called.
 */
export function encodeTools(conversation: Conversation, notes: Notes): JsonObject[] | undefined {
  const tools = conversation.tools.flatMap<JsonObject>((tool) => {
    dropExtras(tool, notes);
    if (tool.kind === "function") return encodeFunction(tool);
    if (tool.kind === "freeform") return freeformTool(tool, notes);
    if (tool.dialect === "messages") return tool.value;
    refuseForced(conversation, tool);
    notes.addDropped(nameOf(tool));
    return [];
  });
  return tools.length === 0 ? undefined : tools;
}

function encodeFunction(tool: FunctionTool): JsonObject {
  const { name, description, strict } = tool;
  return restoreCacheMark(
    omitUndefined({ name, description, input_schema: tool.schema ?? emptySchema, strict: strict || undefined }),
    tool,
  );
}

const emptySchema = { type: "object", properties: {} };

/** `adapt` has converted these to functions; if not, the input is one text. */
function freeformTool({ name, description, grammar }: FreeformTool, notes: Notes): JsonObject {
  if (grammar !== undefined) notes.addDropped("grammar");
  const schema = { type: "object", properties: { input: { type: "string" } }, required: ["input"] };
  return omitUndefined({ name, description, input_schema: schema });
}

/** A tool of another provider may be left out, unless it must be called. */
function refuseForced({ toolChoice, tools, extras }: Conversation, tool: ForeignTool): void {
  const choice = extras?.openai?.tool_choice;
  const named = isObject(toolChoice) && (toolChoice.name === tool.value.name || toolChoice.name === tool.value.type);
  const alone = toolChoice === "required" && tools.length === 1;
  if (!named && !alone && !(isObject(choice) && choice.type === nameOf(tool))) return;
  const sentence = `The tool \`${nameOf(tool)}\` does not exist for this model, so \`tool_choice\` cannot force it.`;
  refuse("tool_choice", sentence, "unsupported_value");
}

/** Undefined if nothing was requested. */
export function encodeChoice({ toolChoice, parallelTools, tools }: Conversation): JsonObject | undefined {
  const single = parallelTools === false && tools.length > 0 ? { disable_parallel_tool_use: true } : undefined;
  if (toolChoice === undefined) return single && { type: "auto", ...single };
  if (toolChoice === "none") return { type: "none" };
  if (typeof toolChoice === "object") return { type: "tool", name: toolChoice.name, ...single };
  return { type: toolChoiceWords[toolChoice], ...single };
}
