/** Tools and `tool_choice` in the chat dialect. */

import { quoted, words } from "../../lib/errors";
import { isObject } from "../../lib/json";
import type { Conversation, ForeignTool, JsonObject, Tool } from "../hub/conversation";
import { Fields } from "../hub/fields";
import { nameOf } from "../hub/foreign";
import { omitUndefined, refuse } from "../hub/json";
import type { Notes } from "../hub/notes";
import { decodeToolChoice } from "../openai";
import { cacheOf, ownExtras, unreadExtras } from "./extras";
import { isSearch } from "./server-tools";

// ── Decode ──

/** @throws ProxyError `invalid_request` naming the field. */
export function decodeTool(value: unknown, index: number): Tool {
  const tool = Fields.at(value, `tools[${index}]`);
  const type = tool.any("type");
  if (type !== "function" && type !== "custom") return { kind: "foreign", dialect: "chat", value: tool.object };
  const definition = tool.fields(type);
  const read =
    type === "custom"
      ? ({ kind: "freeform", grammar: definition.any("format") ?? undefined } as const)
      : ({
          kind: "function",
          schema: definition.any("parameters") ?? undefined,
          strict: definition.optionalBoolean("strict"),
        } as const);
  return omitUndefined({
    ...read,
    name: definition.text("name"),
    description: definition.optionalText("description"),
    ...cacheOf(tool),
    ...unreadExtras(tool, { [type]: definition }),
  });
}

/** The choice of tools; see {@link decodeToolChoice}. */
export const decodeChoice = (choice: unknown) =>
  decodeToolChoice(choice, {
    nameIn: (chosen, type) => new Fields(chosen, "tool_choice").fields(type).text("name"),
    allowed(chosen) {
      const allowed = new Fields(chosen, "tool_choice").fields("allowed_tools");
      const tools = allowed.list("tools").map(([value, path]): string | ForeignTool => {
        const tool = Fields.at(value, path);
        const type = tool.any("type") === "custom" ? "custom" : "function";
        if (!isObject(tool.any(type))) return { kind: "foreign", dialect: "chat", value: tool.object };
        return tool.fields(type).text("name");
      });
      return { mode: allowed.any("mode"), tools };
    },
  });

// ── Encode ──

/** Tools that the dialect does not have are left out and noted as dropped. */
export function encodeTools(tools: Tool[], notes: Notes): JsonObject[] {
  const wire = tools.map((tool) => {
    const encoded = encodeTool(tool, notes);
    if (!encoded && tool.kind === "foreign" && !isSearch(tool)) notes.addDropped(nameOf(tool));
    return encoded;
  });
  return wire.filter((tool) => tool !== undefined);
}

function encodeTool(tool: Tool, notes: Notes): JsonObject | undefined {
  if (tool.kind === "foreign") return tool.dialect === "chat" && !isSearch(tool) ? tool.value : undefined;
  const { function: ofFunction, custom: ofCustom, name: _, ...extras } = ownExtras(tool, notes);
  const definition = { name: tool.name, description: tool.description };
  if (tool.kind === "freeform") {
    const custom = { ...(isObject(ofCustom) ? ofCustom : {}), ...definition, format: tool.grammar };
    return { ...extras, type: "custom", custom: omitUndefined(custom) };
  }
  if (tool.cache) notes.addDropped("cache_control");
  const members = {
    ...(isObject(ofFunction) ? ofFunction : {}),
    ...definition,
    parameters: tool.schema,
    strict: tool.strict,
  };
  return { ...extras, type: "function", function: omitUndefined(members) };
}

/**
 * The fields `tool_choice` and `parallel_tool_calls`.
 * @param wireTools The tools that were not left out.
 * @throws ProxyError `invalid_request` if a tool that was left out must be called.
 */
export function encodeChoice(conversation: Conversation, wireTools: JsonObject[]): JsonObject {
  const choice = choiceOf(conversation);
  if (wireTools.length > 0) return { tool_choice: choice, parallel_tool_calls: conversation.parallelTools };
  if (conversation.tools.length === 0) return choice === "auto" || choice === "none" ? {} : { tool_choice: choice };
  // Every tool was left out: the choice is omitted as well, unless a tool must be called.
  if (choice === "required") refuseChoice();
  return {};
}

function choiceOf({ toolChoice, allowedTools, tools, extras }: Conversation): unknown {
  const isCustom = (name: string) => tools.some((tool) => tool.kind === "freeform" && tool.name === name);
  const named = (name: string) =>
    isCustom(name) ? { type: "custom", custom: { name } } : { type: "function", function: { name } };
  if (allowedTools) {
    const names = allowedTools.filter((tool) => typeof tool === "string");
    if (names.length === 0 && toolChoice === "required") refuseChoice();
    return { type: "allowed_tools", allowed_tools: { mode: toolChoice ?? "auto", tools: names.map(named) } };
  }
  // The client's choice refers to a tool that this dialect does not have.
  if (toolChoice === undefined) return extras?.openai?.tool_choice == null ? undefined : refuseChoice();
  if (typeof toolChoice === "string") return toolChoice;
  const { name } = toolChoice;
  const tool = tools.find((tool) => (tool.kind === "foreign" ? tool.value.name : tool.name) === name);
  if (tool?.kind === "foreign") refuseChoice(name);
  return named(name);
}

function refuseChoice(name?: string): never {
  const tool = name === undefined ? "a tool" : words`\`${quoted(name)}\``;
  refuse("tool_choice", words`\`tool_choice\` asks for ${tool} that this model does not have.`);
}
