/** Finds the tools that fit a query. The time depends on the query and the tools, so that a worker thread does it (`match-threads.ts`). */

/** How many tools one search finds at most. */
export const maxFound = 5;

interface SearchedTool {
  name: string;
  description: string;
  /** The names of its arguments. */
  inputs: string[];
}

export interface ToolQuery {
  query: string;
  how: "words" | "regex";
  tools: readonly SearchedTool[];
}

/** The names of the tools that fit best; undefined for a pattern that cannot be read. */
export const matchTools = ({ query, how, tools }: ToolQuery): Promise<string[] | undefined> =>
  how === "regex" ? matching(query, tools) : ranked(query, tools);

/** Ranks tools by BM25. A tool whose name has the word comes before one that mentions it. */
async function ranked(query: string, tools: readonly SearchedTool[]): Promise<string[]> {
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
  index.addAll(tools.map(({ name, description, inputs }, id) => ({ id, name, description, inputs: inputs.join(" ") })));
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

/** In the order of the request. The library takes linear time in the text, but a repeat in the pattern may be 1,000 of its own. */
async function matching(pattern: string, tools: readonly SearchedTool[]): Promise<string[] | undefined> {
  const { RE2JS, RE2JSException } = await import("re2js");
  try {
    const regex = RE2JS.compile(pattern);
    const isFound = ({ name, description, inputs }: SearchedTool) =>
      [name, description, ...inputs].some((text) => regex.matcher(text).find());
    return tools
      .filter(isFound)
      .slice(0, maxFound)
      .map(({ name }) => name);
  } catch (thrown) {
    if (thrown instanceof RE2JSException) return undefined;
    throw thrown;
  }
}
