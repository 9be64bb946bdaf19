/** Tools that dragoman runs, as functions for the model. */
import type { Conversation, ForeignTool, FunctionTool, Tool, Turn } from "./conversation";
import { without } from "./json";
import { type ServerToolName, searches } from "./searches";
import type { ServerToolOffer } from "./server-tools";
import { foundIn, type WaitingTools, withFound } from "./tool-search";
import { ChosenTools, namesOf } from "./tools";

/** A request whose tools are functions here. */
export interface OfferedTools {
  conversation: Conversation;
  /** By the names of the functions. */
  offers: ReadonlyMap<string, ServerToolOffer>;
  /** The tools that the model has to search for. */
  waiting?: WaitingTools;
}

type OfferingTool = ForeignTool & { server: ServerToolOffer };

/**
 * Puts functions in the place of tools of the provider.
 * @param formOf The function for a tool; undefined for one that is not run here, which stays as it is.
 * @returns Undefined if nothing changed.
 */
export function offerFunctions(
  conversation: Conversation,
  formOf: (offer: ServerToolOffer) => Pick<FunctionTool, "description" | "schema"> | undefined,
): OfferedTools | undefined {
  const taken = new Set(namesOf(conversation.tools));
  const offers = new Map<string, ServerToolOffer>();
  const replaced = new Set<OfferingTool>();
  const tools = conversation.tools.flatMap((tool): Tool[] => {
    if (!isOffering(tool) || taken.has(searches[tool.server.tool].function)) return [tool];
    const { server } = tool;
    const name = searches[server.tool].function;
    if (offers.has(name)) {
      replaced.add(tool);
      return [];
    }
    const form = formOf(server);
    if (!form) return [tool];
    replaced.add(tool);
    offers.set(name, server);
    return [{ kind: "function", name, ...form }];
  });
  if (offers.size === 0) return undefined;
  return { conversation: withChoice(withoutField({ ...conversation, tools }, "max_tool_calls"), replaced), offers };
}

/** Without a field of OpenAI's requests: the offers hold the limit of its own tools, which do not run at the upstream. */
function withoutField(conversation: Conversation, field: "max_tool_calls" | "tool_choice"): Conversation {
  const { openai } = conversation.extras ?? {};
  if (openai?.[field] === undefined) return conversation;
  return { ...conversation, extras: { ...conversation.extras, openai: without(openai, [field]) } };
}

const isOffering = (tool: Tool): tool is OfferingTool => tool.kind === "foreign" && tool.server !== undefined;

/** A choice of one of these tools, by its form or by the name that it had in its dialect, becomes a choice of its function. */
function withChoice(conversation: Conversation, replaced: ReadonlySet<OfferingTool>): Conversation {
  const { allowedTools, toolChoice, extras } = conversation;
  const tools = [...replaced];
  const choosable = new ChosenTools(tools);
  const functionOf = (tool: OfferingTool | undefined) => tool && searches[tool.server.tool].function;
  const byForm = (value: unknown) => functionOf(choosable.matching(value)[0]);
  const formed = byForm(extras?.openai?.tool_choice);
  const chosen =
    typeof toolChoice === "object" ? functionOf(tools.find(({ value }) => value.name === toolChoice.name)) : undefined;
  const name = formed ?? chosen;
  const allowed = allowedTools?.map((tool) => (typeof tool === "string" ? tool : (byForm(tool.value) ?? tool)));
  return {
    ...(formed === undefined ? conversation : withoutField(conversation, "tool_choice")),
    ...(allowed ? { allowedTools: allowed } : {}),
    ...(name === undefined ? {} : { toolChoice: { name } }),
  };
}

/**
 * The request for the next answer of the same reply.
 * @param produced The turns that the model has produced, with calls and results of these tools.
 * @param mayCall Whether the model may call a tool again.
 */
export function continueConversation(
  { conversation, offers, waiting }: OfferedTools,
  produced: Turn[],
  mayCall: (tool: ServerToolName) => boolean,
): Conversation {
  const { toolChoice, ...others } = waiting ? withFound(conversation, waiting, foundIn(produced)) : conversation;
  // The tool that had to be called has been called by now.
  const isDone = toolChoice === "required" || (typeof toolChoice === "object" && offers.has(toolChoice.name));
  const next: Conversation = {
    ...others,
    ...(isDone || toolChoice === undefined ? {} : { toolChoice }),
    turns: [...others.turns, ...produced],
  };
  const ended = new Set([...offers].filter(([, { tool }]) => !mayCall(tool)).map(([name]) => name));
  if (ended.size === 0) return next;
  const isKept = (name: string) => !ended.has(name);
  const tools = next.tools.filter((tool) => tool.kind === "foreign" || isKept(tool.name));
  // Upstreams refuse calls in the history if there are no tools.
  if (tools.length === 0) return { ...next, toolChoice: "none" };
  const { allowedTools } = next;
  const kept = allowedTools?.filter((tool) => typeof tool !== "string" || isKept(tool));
  return { ...next, tools, ...(kept ? { allowedTools: kept } : {}) };
}
