/**
 * The searches of web pages and of tools that run while the model answers, and each API's names for them. The provider
 * runs them, or dragoman where the provider does not.
 */

/** `tool` is the beginning of the types that the API has for the tool: some end in a date. */
interface Search {
  finds: "pages" | "tools";
  /** The function that the model gets where dragoman searches. */
  function: string;
  /** `name` stands in calls, `result` is the type of the result's block. */
  messages: { tool: string; name: string; result: string };
  /** `call` and `output` are types of items. */
  responses?: { tool: string; call: string; output?: string };
  /** A field of the request. */
  chat?: string;
  /** Members of a tool. */
  gemini?: readonly string[];
}

/** Anthropic's names for its searches of tools all begin so, those that dragoman cannot run too. */
export const toolSearchNames = "tool_search_tool_";

export const searches = {
  "web-search": {
    finds: "pages",
    function: "web_search",
    messages: { tool: "web_search_", name: "web_search", result: "web_search_tool_result" },
    responses: { tool: "web_search", call: "web_search_call" },
    chat: "web_search_options",
    gemini: ["googleSearch", "googleSearchRetrieval", "enterpriseWebSearch"],
  },
  "tool-search": {
    finds: "tools",
    function: "tool_search",
    messages: { tool: "tool_search_tool_bm25", name: "tool_search_tool_bm25", result: "tool_search_tool_result" },
    responses: { tool: "tool_search", call: "tool_search_call", output: "tool_search_output" },
  },
  "tool-search-regex": {
    finds: "tools",
    function: "tool_search_regex",
    messages: { tool: "tool_search_tool_regex", name: "tool_search_tool_regex", result: "tool_search_tool_result" },
  },
} as const satisfies Record<string, Search>;

export type ServerToolName = keyof typeof searches;
export const serverToolNames = Object.keys(searches) as ServerToolName[];

export const isToolSearch = (tool: ServerToolName | undefined): boolean =>
  tool !== undefined && searches[tool].finds === "tools";

/** The search that a tool of this type is; undefined for another tool. */
export function searchOfType(type: unknown, dialect: "messages" | "responses"): ServerToolName | undefined {
  return serverToolNames.find((name) => {
    const forms: Search = searches[name];
    const { tool } = forms[dialect] ?? {};
    return tool !== undefined && typeof type === "string" && type.startsWith(tool);
  });
}
