/**
 * Tools that the model gets only when it has searched for them. Which tools it has found stands in the conversation
 * itself: nothing is stored.
 */

import type {
  Conversation,
  Dialect,
  ForeignTool,
  FreeformTool,
  FunctionTool,
  Part,
  Tool,
  Turn,
  WithExtras,
} from "./conversation";
import { replaceForeign } from "./foreign";
import { without } from "./json";
import type { ModelFacts } from "./model";
import { unnoted } from "./notes";
import { isToolSearch, searches } from "./searches";
import { countTools, namesOf } from "./tools";
import { upstreamFacts } from "./upstream-facts";

type ClientTool = FunctionTool | FreeformTool;

/** The tools that a model does not have from the beginning. */
export interface WaitingTools {
  tools: ReadonlyMap<string, ClientTool>;
  /** How many of them the model may have at once. */
  room: number;
}

interface Deferred {
  conversation: Conversation;
  waiting: WaitingTools;
  /** Tools that wait only because the upstream does not take so many. */
  overflow: number;
}

/** How often a model may search for tools for one reply. */
const maxUses = 10;
/** The upstream's limit has to hold tools that are found later: this many places stay free for them. */
const roomForFound = 32;

/** Whether the upstream itself searches for tools when this model is asked in this dialect. */
export const hasToolSearch = ({ supports }: Pick<ModelFacts, "supports">, dialect: Dialect): boolean =>
  upstreamFacts[dialect].mayHaveToolSearch === true && supports.toolSearch === true;

/**
 * Leaves out the tools that the model is to search for, and as many others as the upstream does not take.
 * @param isNative Whether the upstream searches itself: then the client's deferred tools stay.
 * @returns Undefined if nothing changed.
 */
export function deferTools(conversation: Conversation, target: Dialect, isNative: boolean): Deferred | undefined {
  const { found, turns } = isNative ? { found: [], turns: conversation.turns } : shownSearches(conversation.turns);
  const tools = isNative ? conversation.tools : conversation.tools.map(plainTool);
  const isKept = (tool: Tool) => tool.kind === "foreign" || isNative || !tool.isDeferred;
  const kept = tools.filter(isKept);
  const limit = upstreamFacts[target].toolLimit;
  const always = tools.filter((tool) => tool.kind === "foreign" || !tool.isDeferred);
  // One of those that wait has to fit once it is found.
  const overflow = overflowOf(always, target, kept.length < tools.length ? limit - 1 : limit, isNative);
  const first = kept.filter((tool) => !overflow.has(tool));
  const left = tools.filter((tool): tool is ClientTool => !isKept(tool) || overflow.has(tool));
  const isSame = left.length === 0 && turns === conversation.turns && tools.every(isSameTool(conversation.tools));
  if (isSame) return undefined;

  const waiting = new Map(left.map((tool) => [tool.name, asFound(tool)]));
  const candidates = [...waiting.values()];
  const searching = first.flatMap((tool): Tool[] => {
    if (isNative || tool.kind !== "foreign" || !isToolSearch(tool.server?.tool)) return [tool];
    return tool.server && candidates.length > 0 ? [{ ...tool, server: { ...tool.server, candidates, maxUses } }] : [];
  });
  const canSearch = searching.some((tool) => tool.kind === "foreign" && tool.server?.candidates);
  const own: ForeignTool = {
    kind: "foreign",
    dialect: "responses",
    value: { type: searches["tool-search"].function },
    server: { tool: "tool-search", candidates, maxUses, isHidden: true },
  };
  const all = overflow.size > 0 && !canSearch ? [...searching, own] : searching;
  const rest = { tools: waiting, room: Math.max(1, limit - placesOf(all, target)) };
  const { toolChoice, allowedTools = [] } = conversation;
  // The model may call no others, and needs no search for those that wait only for want of room.
  const allowed = namesOf([...overflow]).filter((name) => allowedTools.includes(name));
  const forced = typeof toolChoice === "object" ? [toolChoice.name] : allowed;
  const loaded = [...found, ...calledIn(turns), ...forced];
  return {
    conversation: withFound({ ...conversation, turns, tools: all }, rest, loaded),
    waiting: rest,
    overflow: overflow.size,
  };
}

/** The conversation as the model has it in its prompt: without the tools that wait until it has found them. */
export function withoutWaiting(conversation: Conversation, target: Dialect): Conversation {
  const waits = conversation.tools.some((tool) => tool.kind !== "foreign" && tool.isDeferred);
  return (waits && deferTools(conversation, target, false)?.conversation) || conversation;
}

const isSameTool = (before: readonly Tool[]) => (tool: Tool, at: number) => tool === before[at];

/** How many tools the upstream gets, with the functions in place of those that run here. */
function placesOf(tools: readonly Tool[], target: Dialect): number {
  if (upstreamFacts[target].hasToolLists) return countTools(tools, target);
  const names = namesOf(tools);
  const run = tools.flatMap((tool) =>
    tool.kind !== "foreign" || !tool.server ? [] : searches[tool.server.tool].function,
  );
  return countTools(tools, target) + new Set(run).difference(new Set(names)).size;
}

/** The last tools of a list that is longer than the upstream takes; the client's first ones are most likely its own. */
function overflowOf(tools: readonly Tool[], target: Dialect, limit: number, isNative: boolean): Set<Tool> {
  const canOffer = tools.every((tool) => tool.kind === "foreign" || tool.name !== searches["tool-search"].function);
  const canSearch = !isNative && tools.some((tool) => tool.kind === "foreign" && isToolSearch(tool.server?.tool));
  if (placesOf(tools, target) <= limit || !(canOffer || canSearch)) return new Set();
  const clients = tools.filter(({ kind }) => kind !== "foreign");
  return new Set(clients.slice(Math.max(1, limit - roomForFound)));
}

/**
 * Adds the tools that were found, in that order, so that the prompt's beginning stays the same. Where there is no room
 * for all, the latest stay.
 */
export function withFound(conversation: Conversation, { tools, room }: WaitingTools, found: string[]): Conversation {
  const waiting = (tool: Tool) => tool.kind !== "foreign" && tools.has(tool.name);
  const names = new Set([...namesOf(conversation.tools.filter(waiting)), ...found]);
  const loaded = [...names].flatMap((name) => tools.get(name) ?? []).slice(-room);
  const all = [...conversation.tools.filter((tool) => !waiting(tool)), ...loaded];
  const { allowedTools } = conversation;
  if (!allowedTools) return { ...conversation, tools: all };
  // Upstreams refuse a choice of tools that they were not given; the tools that are left out may be searched for.
  const present = new Set(namesOf(all));
  const kept = allowedTools.filter((tool) => typeof tool !== "string" || present.has(tool) || !tools.has(tool));
  const searching = all.filter((tool) => tool.kind === "foreign" && isToolSearch(tool.server?.tool));
  const isNarrowed = kept.length < allowedTools.length;
  return {
    ...conversation,
    tools: all,
    allowedTools: isNarrowed ? [...kept, ...searching.filter((tool) => tool.kind === "foreign")] : kept,
  };
}

/** The tools that were found in these turns, in order. */
export function foundIn(turns: readonly Turn[]): string[] {
  const names: string[] = [];
  const add = (found: readonly string[]): void => {
    for (const name of found) names.push(name);
  };
  const look = (part: Part): void => {
    if (part.kind === "server-result" && part.output.kind === "tools") add(part.output.names);
    else if (part.kind === "foreign" && part.toolSearch) add(part.toolSearch.found);
    else if (part.kind === "tool-result") for (const inner of part.parts) look(inner);
  };
  for (const { parts } of turns) for (const part of parts) look(part);
  return names;
}

/** The tools that the model has called: it must have found them. */
const calledIn = (turns: readonly Turn[]): string[] =>
  turns.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === "tool-call" ? [part.name] : [])));

/** The searches in the conversation as this model sees them: calls and results of a function. */
function shownSearches(turns: Turn[]): { found: string[]; turns: Turn[] } {
  const shown = replaceForeign(turns, ({ toolSearch }) => toolSearch !== undefined, unnoted);
  return { found: foundIn(turns), turns: shown };
}

/** A tool without what only an upstream with a search of its own takes. */
function plainTool(tool: Tool): Tool {
  if (tool.kind === "foreign") return tool;
  const { isFound, extras, ...others } = tool;
  const families = (["openai", "anthropic"] as const).filter(
    (family) => extras?.[family] && deferring in extras[family],
  );
  const isSearch = tool.kind === "function" && tool.clientSearch;
  if (families.length === 0 && !isFound && !isSearch) return tool;
  const plain: NonNullable<WithExtras["extras"]> = { ...extras };
  for (const family of families) plain[family] = without(plain[family] ?? {}, [deferring]);
  return { ...others, ...(isSearch ? { clientSearch: undefined } : {}), ...(extras ? { extras: plain } : {}) };
}

/** OpenAI and Anthropic have the same name for it. */
const deferring = "defer_loading";

/** A tool once it is found: one as all others. */
function asFound(tool: ClientTool): ClientTool {
  const { isDeferred, ...others } = tool;
  return others;
}
