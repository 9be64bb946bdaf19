/** Adapts tools to what every upstream of a dialect accepts: no duplicates, and schemas that are not refused. */

import { isObject, sameJsonAs } from "../../lib/json";
import type { Conversation, Dialect, ForeignTool, JsonObject, Tool } from "./conversation";
import { refuse } from "./json";
import { isSameList } from "./lists";
import type { Notes } from "./notes";
import { type RenamedProperties, renameProperties } from "./property-names";
import { fitSchema, vendorRow } from "./tool-schema";
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

interface FittedTools {
  /** The same array if nothing had to change. */
  tools: Tool[];
  /** The properties that are sent under other names, by the tool's name. */
  renamed: ReadonlyMap<string, RenamedProperties>;
}

/** @param vendor Who made the model, as in the catalogue. */
export function fitTools(tools: Tool[], target: Dialect, vendor: string, notes: Notes): FittedTools {
  const row = vendorRow(target, vendor);
  const renamed = new Map<string, RenamedProperties>();
  const fitted = oneEach(tools, target, notes).map((tool): Tool => {
    if (tool.kind !== "function" || !isObject(tool.schema)) return tool;
    const plain = fitSchema(tool.schema, row.fixups, notes);
    const named = row.names && renameProperties(plain.schema, row.names);
    if (plain.schema === tool.schema && !named) return tool;
    if (named) {
      notes.addFixup("schema-names");
      renamed.set(tool.name, named.renamed);
    }
    const { strict, ...others } = tool;
    const schema = named?.schema ?? plain.schema;
    if (strict === undefined) return { ...others, schema };
    if (!strict || !plain.isLooser) return { ...others, schema, strict };
    notes.addDropped("strict");
    return { ...others, schema };
  });
  return { tools: isSameList(fitted, tools) ? tools : fitted, renamed };
}

/**
 * Removes the tools that are not allowed, for an upstream without `allowed_tools`.
 * @throws ProxyError `invalid_request` if a tool must be called and none is left.
 */
export function onlyAllowed(conversation: Conversation): Conversation {
  const { allowedTools, ...others } = conversation;
  if (!allowedTools) return conversation;
  const names = new Set(allowedTools.filter((allowed) => typeof allowed === "string"));
  const foreign = new ChosenTools(conversation.tools.filter((tool) => tool.kind === "foreign"));
  const chosen = new Set<Tool>(
    allowedTools.flatMap((allowed) => (typeof allowed === "string" ? [] : foreign.matching(allowed.value))),
  );
  const tools = conversation.tools.filter((tool) =>
    tool.kind === "foreign" ? chosen.has(tool) : names.has(tool.name),
  );
  if (tools.length === 0 && conversation.toolChoice === "required") {
    const sentence = "`tool_choice` requires tools that are not in this request.";
    refuse("tool_choice", sentence, "unsupported_value");
  }
  return { ...others, tools };
}

/** How many members of choices and tools are compared for a request; an honest one has a small part of them. */
const mostComparisons = 20_000;

/** Tools of a provider, to which a choice refers by their type, and by a label if there are several of it. */
export class ChosenTools<T extends ForeignTool> {
  readonly #tools: { tool: T; texts: Map<string, string> }[];
  #left = mostComparisons;

  constructor(tools: readonly T[]) {
    this.#tools = tools.map((tool) => ({ tool, texts: textsOf(tool.value) }));
  }

  /** The tools that a choice refers to; fewer, once too much was compared. */
  matching(choice: unknown): T[] {
    if (!isObject(choice) || this.#left <= 0) return [];
    const wanted = [...textsOf(choice)];
    const isCounted = () => this.#left-- > 0;
    const found = this.#tools.filter(
      ({ texts }) => isCounted() && wanted.every(([key, text]) => isCounted() && texts.get(key) === text),
    );
    return found.map(({ tool }) => tool);
  }
}

const textsOf = (object: JsonObject): Map<string, string> =>
  new Map(Object.entries(object).map(([key, value]) => [key, JSON.stringify(value)]));

/** Removes identical duplicates, which Anthropic refuses: "Tool names must be unique." */
function oneEach(tools: Tool[], target: Dialect, notes: Notes): Tool[] {
  const first = new Map<string, (other: Tool) => boolean>();
  const isAgain = (tool: Tool): boolean => {
    if (tool.kind === "foreign") return false;
    const isSame = first.get(tool.name);
    if (!isSame) first.set(tool.name, sameJsonAs(tool));
    return isSame ? isSame(tool) : tool.isRepeated === true && !upstreamFacts[target].hasToolLists;
  };
  return tools.filter((tool) => {
    const again = isAgain(tool);
    if (again) notes.addFixup("tool-repeated");
    return !again;
  });
}
