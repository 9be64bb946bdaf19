/** Adapts tools to what every upstream of a dialect accepts: no duplicates, and schemas that are not refused. */

import { isObject, isSameJson } from "../../json";
import type { Changes } from "./changes";
import type { Conversation, Dialect, Tool } from "./conversation";
import { refuse } from "./json";
import { isSameList } from "./lists";
import { type RenamedProperties, renameProperties } from "./property-names";
import { fitSchema, isLooser, vendorRow } from "./tool-schema";
import { upstreamFacts } from "./upstream-facts";

/** The names of the tools that the client runs. */
export const namesOf = (tools: readonly Tool[]): string[] =>
  tools.flatMap((tool) => (tool.kind === "foreign" ? [] : [tool.name]));

/** The tools as the upstream counts them. */
export function countTools(tools: readonly Tool[], target: Dialect): number {
  if (!upstreamFacts[target].hasToolLists) return tools.filter(({ kind }) => kind !== "foreign").length;
  const lists = tools.map(({ listedIn, namespace }) => listedIn ?? namespace);
  const nested = lists.filter((list) => list !== undefined);
  return tools.length - nested.length + new Set(nested).size;
}

/** The groups of tools by the servers in their names, the largest first: `mcp__github (40), mcp__jira (12)`. */
export function largestGroups(names: readonly string[], count: number): string {
  const groups = new Map<string, number>();
  for (const name of names) groups.set(prefixOf(name), (groups.get(prefixOf(name)) ?? 0) + 1);
  const largest = [...groups].sort(([, one], [, other]) => other - one).slice(0, count);
  return largest.map(([prefix, size]) => `${prefix} (${size})`).join(", ");
}

/** The server part of a tool's name: `mcp__github` in `mcp__github__search`. */
function prefixOf(name: string): string {
  const end = name.lastIndexOf("__");
  return end > 0 ? name.slice(0, end) : (/^[a-zA-Z0-9]+/.exec(name)?.[0] ?? name);
}

interface FittedTools extends Changes {
  /** The same array if nothing had to change. */
  tools: Tool[];
  /** The properties that are sent under other names, by the tool's name. */
  renamed: ReadonlyMap<string, RenamedProperties>;
}

/** @param vendor Who made the model, as in the catalogue. */
export function fitTools(tools: Tool[], target: Dialect, vendor: string): FittedTools {
  const row = vendorRow(target, vendor);
  const fixups = new Set<string>();
  const dropped = new Set<string>();
  const renamed = new Map<string, RenamedProperties>();
  const fitted = oneEach(tools, target, fixups).map((tool): Tool => {
    if (tool.kind !== "function" || !isObject(tool.schema)) return tool;
    const plain = fitSchema(tool.schema, row.fixups);
    const named = row.names && renameProperties(plain.schema, row.names);
    if (plain.fixups.length === 0 && !named) return tool;
    for (const name of plain.fixups) fixups.add(name);
    for (const name of plain.dropped) dropped.add(name);
    if (named) {
      fixups.add("schema-names");
      renamed.set(tool.name, named.renamed);
    }
    const { strict, ...others } = tool;
    const schema = named?.schema ?? plain.schema;
    if (strict === undefined) return { ...others, schema };
    if (!strict || !isLooser(plain.fixups)) return { ...others, schema, strict };
    dropped.add("strict");
    return { ...others, schema };
  });
  return { tools: isSameList(fitted, tools) ? tools : fitted, renamed, fixups: [...fixups], dropped: [...dropped] };
}

/**
 * Removes the tools that are not allowed, for an upstream without `allowed_tools`.
 * @throws ProxyError `invalid_request` if a tool must be called and none is left.
 */
export function onlyAllowed(conversation: Conversation): Conversation {
  const { allowedTools, ...others } = conversation;
  if (!allowedTools) return conversation;
  const tools = conversation.tools.filter((tool) =>
    allowedTools.some((allowed) =>
      typeof allowed === "string"
        ? tool.kind !== "foreign" && tool.name === allowed
        : matchesChoice(allowed.value, tool),
    ),
  );
  if (tools.length === 0 && conversation.toolChoice === "required") {
    const sentence = "`tool_choice` requires tools that are not in this request.";
    refuse("tool_choice", sentence, "unsupported_value");
  }
  return { ...others, tools };
}

/** A choice refers to a tool of the provider by its type, and by a label if there are several. */
export function matchesChoice(choice: unknown, tool: Tool): boolean {
  const own = tool.kind === "foreign" ? tool.value : undefined;
  return isObject(choice) && own !== undefined && Object.keys(choice).every((key) => isSameJson(choice[key], own[key]));
}

/** Removes identical duplicates, which Anthropic refuses: "Tool names must be unique." */
function oneEach(tools: Tool[], target: Dialect, fixups: Set<string>): Tool[] {
  const first = new Map<string, Tool>();
  const isAgain = (tool: Tool): boolean => {
    if (tool.kind === "foreign") return false;
    const earlier = first.get(tool.name);
    if (!earlier) first.set(tool.name, tool);
    return earlier ? isSameJson(earlier, tool) : tool.isRepeated === true && !upstreamFacts[target].hasToolLists;
  };
  return tools.filter((tool) => {
    const again = isAgain(tool);
    if (again) fixups.add("tool-repeated");
    return !again;
  });
}
