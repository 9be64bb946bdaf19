/** Runs a search of tools: in their names, their descriptions and the names of their arguments. */
import type {
  SearchableTool,
  ServerToolCall,
  ServerToolOffer,
  ServerToolOutput,
} from "../../dialects/hub/server-tools";
import { isObject } from "../../json";
import type { ToolParts } from "./run";

/** How many tools one search finds at most. */
export const maxFound = 5;
/** Characters, as Anthropic documents it for its own search. */
const longestPattern = 200;
const longestQuery = 1000;

/** The config permits it. */
export const maySearchTools = ({ config }: ToolParts): boolean => config.current.toolSearch === "auto";

/** A failure becomes an error that client and model can read; it never ends the reply. */
export async function searchTools(
  { input }: ServerToolCall,
  { among = [] }: ServerToolOffer,
  how: "words" | "regex",
): Promise<ServerToolOutput> {
  const query = [input.query, input.pattern].find((text) => typeof text === "string");
  if (typeof query !== "string" || query.trim() === "") return { kind: "error", code: "invalid_tool_input" };
  if (query.length > (how === "regex" ? longestPattern : longestQuery))
    return { kind: "error", code: "query_too_long" };
  const names = how === "regex" ? await matching(query, among) : await ranked(query, among);
  return names ? { kind: "tools", names } : { kind: "error", code: "invalid_tool_input" };
}

/** By BM25. A tool whose name has the word comes before one that mentions it. */
async function ranked(query: string, tools: readonly SearchableTool[]): Promise<string[]> {
  const { default: MiniSearch } = await import("minisearch");
  const index = new MiniSearch<{ id: number; name: string; description: string; inputs: string }>({
    fields: ["name", "description", "inputs"],
    tokenize: wordsIn,
    searchOptions: {
      boost: { name: 3 },
      prefix: (term) => term.length > 3,
      fuzzy: (term) => (term.length > 5 ? 0.2 : false),
    },
  });
  index.addAll(
    tools.map(({ name, description = "", schema }, id) => ({
      id,
      name,
      description,
      inputs: inputsOf(schema).join(" "),
    })),
  );
  return index
    .search(query)
    .slice(0, maxFound)
    .flatMap(({ id }) => tools[id as number]?.name ?? []);
}

/** `mcp__github__createIssue`: mcp, github, create, issue. */
const wordsIn = (text: string): string[] =>
  text
    .replaceAll(/(\p{Ll}|\d)(\p{Lu})/gu, "$1 $2")
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");

/**
 * In the order of the request. The library takes linear time whatever the pattern is: a pattern of the model must not
 * hold up all other requests.
 * @returns Undefined for a pattern that cannot be read.
 */
async function matching(pattern: string, tools: readonly SearchableTool[]): Promise<string[] | undefined> {
  const { RE2JS, RE2JSException } = await import("re2js");
  try {
    const regex = RE2JS.compile(pattern);
    const isFound = ({ name, description = "", schema }: SearchableTool) =>
      [name, description, ...inputsOf(schema)].some((text) => regex.matcher(text).find());
    return tools
      .filter(isFound)
      .slice(0, maxFound)
      .map(({ name }) => name);
  } catch (thrown) {
    if (thrown instanceof RE2JSException) return undefined;
    throw thrown;
  }
}

const inputsOf = (schema: unknown): string[] =>
  isObject(schema) && isObject(schema.properties) ? Object.keys(schema.properties) : [];
