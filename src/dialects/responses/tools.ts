/** Tools in the responses dialect: flat, in namespaces, or in `additional_tools` items of the input. */

import { isObject } from "../../lib/json";
import type {
  Conversation,
  ForeignTool,
  FreeformTool,
  FunctionTool,
  JsonObject,
  Tool,
  ToolCallPart,
  ToolItem,
} from "../hub/conversation";
import { Fields } from "../hub/fields";
import { nameOf } from "../hub/foreign";
import { arrayAt, objectAt, omitUndefined, textAt } from "../hub/json";
import type { Notes } from "../hub/notes";
import { searches } from "../hub/searches";
import { decodeToolChoice, extrasOf, withProperties } from "../openai";
import { chatOnly, ownExtras, ownValue } from "./extras";
import { refuseForced } from "./rules";
import { decodeServerTool } from "./server-tools";

// ── Decode ──

/** The tools that were read so far, and their names. */
export interface ToolNames {
  tools: Tool[];
  /** The names in use in the hub, and how often each was wanted. */
  taken: Map<string, number>;
  /** Hub names by namespace and local name. */
  names: Map<string, string>;
  /** By namespace and local name: the tool, or the JSON of all of them where the name occurs again. */
  wireTools: Map<string, JsonObject | Set<string>>;
}

/** Where a tool stands. */
type Place = Pick<Tool, "namespace" | "listedIn" | "isFound">;

/** Reads a list of tools that stands here. */
export function decodeTools(list: unknown[], path: string, scope: ToolNames, place: Place): void {
  for (const [index, value] of list.entries()) {
    const tool = Fields.at(value, `${path}[${index}]`);
    const { type, tools } = tool.object;
    if (type !== "namespace" || !Array.isArray(tools) || tools.length === 0)
      scope.tools.push(decodeTool(tool, scope, place));
    else {
      tool.skip("type", "tools");
      decodeTools(tools, tool.pathOf("tools"), scope, { ...place, namespace: tool.rest() ?? {} });
    }
  }
}

/** Whether an identical tool was read before, as `additional_tools` items may repeat one. */
function isRepeat(tool: JsonObject, key: string, scope: ToolNames): boolean {
  const earlier = scope.wireTools.get(key);
  if (!earlier) {
    scope.wireTools.set(key, tool);
    return false;
  }
  const known = earlier instanceof Set ? earlier : new Set([JSON.stringify(earlier)]);
  scope.wireTools.set(key, known);
  const json = JSON.stringify(tool);
  if (known.has(json)) return true;
  known.add(json);
  return false;
}

function decodeTool(tool: Fields, scope: ToolNames, place: Place): Tool {
  const { object } = tool;
  if (isClientSearch(object)) return { ...decodeClientSearch(tool, scope), ...place };
  const type = tool.any("type");
  if (type !== "function" && type !== "custom") return { ...decodeServerTool(object, tool.path), ...place };
  const local = tool.text("name");
  const namespace = place.namespace?.name;
  const isRepeated = isRepeat(object, nameKey(local, namespace), scope);
  const name = takeName(local, namespace, scope, isRepeated);
  const description = tool.optionalText("description");
  const extras = () => ({
    ...(isRepeated ? { isRepeated } : {}),
    ...(object.defer_loading === true ? { isDeferred: true as const } : {}),
    ...place,
    ...(name === local ? {} : { localName: local }),
    ...extrasOf(tool.rest()),
  });
  if (type === "custom")
    return { kind: "freeform", name, description, grammar: tool.any("format") ?? undefined, ...extras() };
  // A missing `strict` and false are the same: see the rule `strict-default`.
  const strict = tool.optionalBoolean("strict") || undefined;
  return { kind: "function", name, description, schema: tool.any("parameters") ?? undefined, strict, ...extras() };
}

const isClientSearch = ({ type, execution }: JsonObject): boolean =>
  type === searches["tool-search"].responses.tool && execution === "client";

/** The client searches itself: for models without such a tool, it is a function. */
function decodeClientSearch(tool: Fields, scope: ToolNames): FunctionTool {
  return {
    kind: "function",
    name: takeName(searches["tool-search"].responses.tool, undefined, scope, false),
    description: tool.optionalText("description"),
    schema: tool.any("parameters") ?? undefined,
    clientSearch: tool.object,
  };
}

/** A unique hub name for the tool; calls of a repeated tool use the name of the first one. */
function takeName(local: string, namespace: unknown, scope: ToolNames, isRepeated: boolean): string {
  const wanted = flatName(local, namespace);
  let name = wanted;
  let count = scope.taken.get(wanted) ?? 0;
  while (scope.taken.has(name)) name = `${wanted}_${++count + 1}`;
  scope.taken.set(name, 0);
  if (name !== wanted) scope.taken.set(wanted, count);
  if (!isRepeated) scope.names.set(nameKey(local, namespace), name);
  return name;
}

/** The hub name of a tool of which only name and namespace are known. */
const flatName = (local: string, namespace: unknown): string =>
  typeof namespace === "string" && namespace !== "" ? `${namespace}__${local}` : local;

/**
 * The hub name of a tool that is called, of which nothing else is known. OpenAI's models call a tool of no namespace that
 * came by a search with its own name as the namespace (gpt-5.4 and 5.6, recorded 2026-08).
 */
export const calledName = (local: string, namespace: unknown): string =>
  flatName(local, namespace === local ? undefined : namespace);

const nameKey = (local: string, namespace: unknown): string => JSON.stringify([namespace ?? "", local]);

/** The hub name of a tool that is called or chosen. */
export const hubName = (local: string, namespace: unknown, scope: ToolNames): string =>
  scope.names.get(nameKey(local, namespace)) ??
  (namespace === local ? scope.names.get(nameKey(local, undefined)) : undefined) ??
  calledName(local, namespace);

/** The choice of tools; see {@link decodeToolChoice}. */
export const decodeChoice = (choice: unknown, scope: ToolNames) =>
  decodeToolChoice(choice, {
    nameIn: ({ name, namespace }) => hubName(textAt(name, "tool_choice.name"), namespace, scope),
    allowed({ mode, tools }) {
      const path = "tool_choice.tools";
      const read = (value: unknown, index: number): string | ForeignTool => {
        const tool = objectAt(value, `${path}[${index}]`);
        if (tool.type !== "function" && tool.type !== "custom")
          return { kind: "foreign", dialect: "responses", value: tool };
        return hubName(textAt(tool.name, `${path}[${index}].name`), tool.namespace, scope);
      };
      return { mode, tools: arrayAt(tools, path).map(read) };
    },
  });

// ── Encode ──

/**
 * The request's own tools, and those of each `additional_tools` item.
 * @param withFound Tools that stand in the result of a search as well.
 */
export function encodeTools(
  conversation: Conversation,
  notes: Notes,
  withFound = false,
): { list: JsonObject[]; additional: Map<ToolItem, JsonObject[]> } {
  const list: JsonObject[] = [];
  const additional = new Map<ToolItem, JsonObject[]>();
  let nest: { namespace: JsonObject; tools: JsonObject[] } | undefined;
  for (const tool of conversation.tools) {
    const { namespace, listedIn } = tool;
    const extras = ownExtras(tool, chatOnly.others, notes);
    if (tool.isFound && !withFound) continue;
    if (tool.kind === "foreign" && tool.dialect !== "responses") {
      notes.addDropped(nameOf(tool));
      continue;
    }
    const wire = tool.kind === "foreign" ? ownValue(tool, notes) : encodeTool(tool, extras);
    if (!wire) continue;
    const tools = listedIn ? (additional.get(listedIn) ?? []) : list;
    if (listedIn) additional.set(listedIn, tools);
    if (!namespace) {
      nest = undefined;
      tools.push(wire);
    } else if (nest?.namespace === namespace) nest.tools.push(wire);
    else {
      nest = { namespace, tools: [wire] };
      tools.push({ ...namespace, type: "namespace", tools: nest.tools });
    }
  }
  return { list, additional };
}

function encodeTool(tool: FunctionTool | FreeformTool, extras: JsonObject): JsonObject {
  const { description, localName: name = tool.name } = tool;
  if (tool.kind === "function" && tool.clientSearch) return tool.clientSearch;
  if (tool.kind === "freeform")
    return omitUndefined({ ...extras, type: "custom", name, description, format: flatGrammar(tool.grammar) });
  const strict = tool.strict ?? false;
  return omitUndefined({
    ...extras,
    type: "function",
    name,
    description,
    parameters: withProperties(tool.schema ?? { type: "object" }),
    strict,
  });
}

/** The chat dialect has the fields of a grammar one level deeper. */
function flatGrammar(grammar: unknown): unknown {
  if (!isObject(grammar) || !isObject(grammar.grammar)) return grammar;
  return { type: "grammar", ...grammar.grammar };
}

/** The first tools of each name: those that a model calls, and all. */
interface NamedTools {
  callable: Map<unknown, Exclude<Tool, { kind: "foreign" }>>;
  all: Map<unknown, Tool>;
}

/** Each call asks for a name. */
const named = new WeakMap<readonly Tool[], NamedTools>();

function namedIn(tools: readonly Tool[]): NamedTools {
  const known = named.get(tools);
  if (known) return known;
  const names: NamedTools = { callable: new Map(), all: new Map() };
  for (const tool of tools) {
    const name = tool.kind === "foreign" ? tool.value.name : tool.name;
    if (!names.all.has(name)) names.all.set(name, tool);
    if (tool.kind !== "foreign" && !names.callable.has(name)) names.callable.set(name, tool);
  }
  named.set(tools, names);
  return names;
}

/** A tool's wire name: its local name, and its namespace. */
export function wireName(
  { tools }: Conversation,
  call: Pick<ToolCallPart, "name" | "localName" | "extras">,
): JsonObject {
  const tool = namedIn(tools).callable.get(call.name);
  const namespace = tool ? tool.namespace?.name : call.extras?.openai?.namespace;
  return omitUndefined({ name: (tool ?? call).localName ?? call.name, namespace });
}

/** The choice of a tool. */
export function encodeChoice(conversation: Conversation): unknown {
  const { toolChoice, allowedTools } = conversation;
  if (allowedTools) {
    const tools = allowedTools.flatMap((tool) => {
      if (typeof tool === "string") return [namedTool(conversation, tool)];
      return tool.dialect === "responses" ? [tool.value] : [];
    });
    return { type: "allowed_tools", mode: toolChoice ?? "auto", tools };
  }
  if (toolChoice === undefined) return conversation.extras?.openai?.tool_choice;
  return typeof toolChoice === "string" ? toolChoice : namedTool(conversation, toolChoice.name);
}

function namedTool(conversation: Conversation, name: string): JsonObject {
  const tool = namedIn(conversation.tools).all.get(name);
  if (tool?.kind === "foreign" && tool.dialect !== "responses") refuseForced(name);
  return { type: tool?.kind === "freeform" ? "custom" : "function", ...wireName(conversation, { name }) };
}
