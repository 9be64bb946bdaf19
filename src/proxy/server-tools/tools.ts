/** The tools that dragoman runs: which function stands for each, and how it runs. */

import type { FunctionTool } from "../../dialects/hub/conversation";
import type { ServerToolName } from "../../dialects/hub/searches";
import type { ServerToolOffer } from "../../dialects/hub/server-tools";
import { largestGroups } from "../../dialects/hub/tools";
import type { ToolParts, ToolRun } from "./context";
import { maxFound } from "./tool-match";
import { maySearchTools, searchTools } from "./tool-search";
import { maySearch, runWebSearch } from "./web-search";

interface ServerTool {
  /** The config permits it, and there is something to run it with. */
  isAvailable(parts: ToolParts): boolean;
  /** The function for the model; undefined if it would be of no use. */
  form(offer: ServerToolOffer): Pick<FunctionTool, "description" | "schema"> | undefined;
  run: ToolRun;
}

export const serverTools: Record<ServerToolName, ServerTool> = {
  "web-search": {
    isAvailable: maySearch,
    form: ({ allowedDomains, blockedDomains }) => ({
      description: [
        "Searches the web. Returns pages with their titles, their addresses and what they say. Use it for recent events and for facts that you do not know.",
        allowedDomains && `Only pages of these sites are found: ${allowedDomains.join(", ")}.`,
        blockedDomains && `No pages of these sites are found: ${blockedDomains.join(", ")}.`,
      ]
        .filter((line) => line)
        .join(" "),
      schema: oneText("query", "What to search for."),
    }),
    run: runWebSearch,
  },
  "tool-search": {
    isAvailable: maySearchTools,
    form: (offer) =>
      searchForm(offer, {
        how: "Searches by words",
        query: "What the tool is to do, in a few words: verbs, things and names of services.",
      }),
    run: (context, call, offer) => searchTools(context, call, offer, "words"),
  },
  "tool-search-regex": {
    isAvailable: maySearchTools,
    form: (offer) =>
      searchForm(offer, {
        how: "Searches with a regular expression",
        query:
          "A regular expression (RE2) for names and descriptions, at most 200 characters; upper and lower case differ: `(?i)weather`.",
      }),
    run: (context, call, offer) => searchTools(context, call, offer, "regex"),
  },
};

/** The schema of an input with one text. */
const oneText = (name: string, description: string) => ({
  type: "object",
  properties: { [name]: { type: "string", description } },
  required: [name],
  additionalProperties: false,
});

/** Undefined if there is nothing to find. */
function searchForm({ candidates = [] }: ServerToolOffer, words: { how: string; query: string }) {
  if (candidates.length === 0) return undefined;
  const groups = largestGroups(
    candidates.map(({ name }) => name),
    12,
  );
  return {
    description: `${words.how} in the names and descriptions of ${candidates.length} further tools, and makes the ${maxFound} that fit best callable at once. Use it whenever none of the tools that you have fits. Groups of further tools: ${groups}.`,
    schema: oneText("query", words.query),
  };
}
