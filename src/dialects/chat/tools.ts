/** Tools and `tool_choice` in the chat dialect. */

import { ProxyError } from "../../errors";
import { isObject } from "../../json";
import { asChatExtras } from "../hub/chat-extras";
import type { Conversation, JsonObject, Tool } from "../hub/conversation";
import { nameOf } from "../hub/foreign";
import { arrayAt, objectAt, omit, omitUndefined, optionalBoolean, optionalText, textAt } from "../hub/json";
import { extrasOf } from "../openai";
import { cacheOf, nested, ownExtras } from "./extras";
import { isSearch } from "./server-tools";

// ── Wire facts ──

const knownFields = {
  tool: new Set(["type", "function", "custom"]),
  functionDefinition: new Set(["name", "description", "parameters", "strict"]),
  customDefinition: new Set(["name", "description", "format"]),
};

// ── Decode ──

/** @throws ProxyError `invalid_request` naming the field. */
export function decodeTool(value: unknown, index: number): Tool {
  const tool = objectAt(value, `tools[${index}]`);
  if (tool.type !== "function" && tool.type !== "custom") return { kind: "foreign", dialect: "chat", value: tool };
  const path = `tools[${index}].${tool.type}`;
  const definition = objectAt(tool[tool.type], path);
  const name = textAt(definition.name, `${path}.name`);
  const description = optionalText(definition.description, `${path}.description`);
  const unread = omit(
    definition,
    tool.type === "custom" ? knownFields.customDefinition : knownFields.functionDefinition,
  );
  const { cache_control: _, ...extras } = omit(tool, knownFields.tool) ?? {};
  const both = {
    name,
    description,
    ...cacheOf(tool),
    ...extrasOf(asChatExtras({ ...extras, ...nested(tool.type, unread) })),
  };
  if (tool.type === "custom")
    return omitUndefined({ kind: "freeform", ...both, grammar: definition.format ?? undefined });
  const strict = optionalBoolean(definition.strict, `${path}.strict`);
  return omitUndefined({ kind: "function", ...both, schema: definition.parameters ?? undefined, strict });
}

/** A choice that the hub does not have is kept in the extras. */
export function decodeChoice(
  choice: unknown,
): Pick<Conversation, "toolChoice" | "allowedTools"> & { extras?: JsonObject } {
  if (choice == null) return {};
  if (choice === "auto" || choice === "none" || choice === "required") return { toolChoice: choice };
  if (isObject(choice) && choice.type === "allowed_tools") return decodeAllowed(choice);
  if (!isObject(choice) || (choice.type !== "function" && choice.type !== "custom"))
    return { extras: { tool_choice: choice } };
  const definition = objectAt(choice[choice.type], `tool_choice.${choice.type}`);
  return { toolChoice: { name: textAt(definition.name, `tool_choice.${choice.type}.name`) } };
}

/** @throws ProxyError `invalid_request` naming the field. */
function decodeAllowed(choice: JsonObject): Pick<Conversation, "toolChoice" | "allowedTools"> {
  const path = "tool_choice.allowed_tools";
  const { mode, tools } = objectAt(choice.allowed_tools, path);
  return {
    toolChoice: mode === "required" ? "required" : "auto",
    allowedTools: arrayAt(tools, `${path}.tools`).map((value, index) => {
      const tool = objectAt(value, `${path}.tools[${index}]`);
      const definition = tool.type === "custom" ? tool.custom : tool.function;
      if (!isObject(definition)) return { kind: "foreign", dialect: "chat", value: tool };
      return textAt(definition.name, `${path}.tools[${index}].${tool.type}.name`);
    }),
  };
}

// ── Encode ──

/** Tools that the dialect does not have are left out and named in `dropped`. */
export function encodeTools(tools: Tool[], dropped: Set<string>): JsonObject[] {
  const wire = tools.map((tool) => {
    const encoded = encodeTool(tool, dropped);
    if (!encoded && tool.kind === "foreign" && !isSearch(tool)) dropped.add(nameOf(tool));
    return encoded;
  });
  return wire.filter((tool) => tool !== undefined);
}

function encodeTool(tool: Tool, dropped: Set<string>): JsonObject | undefined {
  if (tool.kind === "foreign")
    return tool.dialect === "chat" && isObject(tool.value) && !isSearch(tool) ? tool.value : undefined;
  const { function: ofFunction, custom: ofCustom, name: _, ...extras } = ownExtras(tool, dropped);
  const definition = { name: tool.name, description: tool.description };
  if (tool.kind === "freeform") {
    const format = nestedGrammar(tool.grammar);
    return {
      ...extras,
      type: "custom",
      custom: omitUndefined({ ...(isObject(ofCustom) ? ofCustom : {}), ...definition, format }),
    };
  }
  if (tool.cache) dropped.add("cache_control");
  const members = {
    ...(isObject(ofFunction) ? ofFunction : {}),
    ...definition,
    parameters: tool.schema,
    strict: tool.strict,
  };
  return { ...extras, type: "function", function: omitUndefined(members) };
}

/** The responses dialect has the fields of a grammar one level higher. */
function nestedGrammar(grammar: unknown): unknown {
  if (!isObject(grammar) || grammar.type !== "grammar" || "grammar" in grammar) return grammar;
  const { type, ...members } = grammar;
  return { type, grammar: members };
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
  if (choice === "required") refuseChoice("a tool");
  return {};
}

function choiceOf({ toolChoice, allowedTools, tools, extras }: Conversation): unknown {
  const isCustom = (name: string) => tools.some((tool) => tool.kind === "freeform" && tool.name === name);
  const named = (name: string) =>
    isCustom(name) ? { type: "custom", custom: { name } } : { type: "function", function: { name } };
  if (allowedTools) {
    const names = allowedTools.filter((tool) => typeof tool === "string");
    if (names.length === 0 && toolChoice === "required") refuseChoice("a tool");
    return { type: "allowed_tools", allowed_tools: { mode: toolChoice ?? "auto", tools: names.map(named) } };
  }
  // The client's choice refers to a tool that this dialect does not have.
  if (toolChoice === undefined) return extras?.openai?.tool_choice == null ? undefined : refuseChoice("a tool");
  if (typeof toolChoice === "string") return toolChoice;
  const { name } = toolChoice;
  const tool = tools.find((tool) => (tool.kind === "foreign" ? nameIn(tool.value) : tool.name) === name);
  if (tool?.kind === "foreign") refuseChoice(`\`${name}\``);
  return named(name);
}

function refuseChoice(what: string): never {
  throw new ProxyError("invalid_request", `\`tool_choice\` asks for ${what} that this model does not have.`, {
    param: "tool_choice",
  });
}

const nameIn = (value: unknown) => (isObject(value) ? value.name : undefined);
