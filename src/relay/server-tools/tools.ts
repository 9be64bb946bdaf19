/** The tools that dragoman runs: which function stands for each, and how it runs. */
import type { FunctionTool } from "../../dialects/hub/conversation";
import type { ServerToolName, ServerToolOffer } from "../../dialects/hub/server-tools";
import type { ToolParts, ToolRun } from "./run";
import { maySearch, runWebSearch } from "./web-search";

export interface ServerTool {
  /** The config permits it, and there is something to run it with. */
  isAvailable(parts: ToolParts): boolean;
  form(offer: ServerToolOffer): Pick<FunctionTool, "description" | "schema">;
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
      schema: {
        type: "object",
        properties: { query: { type: "string", description: "What to search for." } },
        required: ["query"],
        additionalProperties: false,
      },
    }),
    run: runWebSearch,
  },
};
