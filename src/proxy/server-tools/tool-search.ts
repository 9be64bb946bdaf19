/** Runs a search of tools: in their names, their descriptions and the names of their arguments. */
import type { ServerToolCall, ServerToolOffer, ServerToolOutput } from "../../dialects/hub/server-tools";
import { isObject } from "../../lib/json";
import type { ToolContext, ToolParts } from "./context";
import { matchInThread } from "./match-threads";

/** Characters, as Anthropic documents it for its own search. */
const longestPattern = 200;
const longestQuery = 1000;

/** The config permits it. */
export const maySearchTools = ({ config }: ToolParts): boolean => config.current.toolSearch === "auto";

/** A failure becomes an error that client and model can read; it never ends the reply. */
export async function searchTools(
  { signal }: Pick<ToolContext, "signal">,
  { input }: ServerToolCall,
  { candidates = [] }: ServerToolOffer,
  how: "words" | "regex",
): Promise<ServerToolOutput> {
  const query = [input.query, input.pattern].find((text) => typeof text === "string");
  if (typeof query !== "string" || query.trim() === "") return { kind: "error", code: "invalid_tool_input" };
  if (query.length > (how === "regex" ? longestPattern : longestQuery))
    return { kind: "error", code: "query_too_long" };
  const tools = candidates.map(({ name, description = "", schema }) => ({
    name,
    description,
    inputs: inputsOf(schema),
  }));
  try {
    const names = await matchInThread({ query, how, tools }, signal);
    return names ? { kind: "tools", names } : { kind: "error", code: "invalid_tool_input" };
  } catch {
    return { kind: "error", code: "unavailable" };
  }
}

const inputsOf = (schema: unknown): string[] =>
  isObject(schema) && isObject(schema.properties) ? Object.keys(schema.properties) : [];
