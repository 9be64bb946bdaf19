/**
 * Tools that run while the model answers: by the provider, or by dragoman where the provider does not have them. The
 * client sees their calls and results as parts of the model's own turn; a model that dragoman runs them for sees calls
 * and results of functions.
 */
import { randomId } from "./ids";
import type { ServerToolName } from "./searches";

/** A request for such a tool, with the client's limits. */
export interface ServerToolOffer {
  tool: ServerToolName;
  /** How often it may run for one reply. */
  maxUses?: number;
  /** Host names, perhaps with a path: only pages below these, or none below those. */
  allowedDomains?: string[];
  blockedDomains?: string[];
  /** Where the person is: `city`, `region`, `country`, `timezone`. */
  location?: Record<string, string>;
  /** Pages are read from the engine's copies only. */
  isCached?: true;
  /** The tools that a search of tools looks through. */
  candidates?: readonly SearchableTool[];
  /** The client did not ask for the tool, and sees nothing of it. */
  isHidden?: true;
}

/** A tool as a search of tools sees it. */
interface SearchableTool {
  name: string;
  description?: string;
  /** JSON Schema of the input object. */
  schema?: unknown;
}

/** The host name of a limit: an upstream or an engine that takes no paths finds a little more, which is left out afterwards. */
export const hostOfLimit = (domain: string): string =>
  domain.replace(/^(?:[a-z]+:\/\/)?(?:\*\.)?/i, "").split("/", 1)[0] ?? "";

export interface ServerToolCall {
  id: string;
  tool: ServerToolName;
  input: Record<string, unknown>;
  /** The client did not ask for the tool, and sees nothing of the call. */
  isHidden?: true;
}

export interface ServerToolResult {
  /** The id of the call. */
  id: string;
  tool: ServerToolName;
  output: ServerToolOutput;
  /** The client did not ask for the tool, and sees nothing of the result. */
  isHidden?: true;
}

export type ServerToolOutput =
  | ({ kind: "pages" } & WebFindings)
  /** The names of tools that can be called from now on. */
  | { kind: "tools"; names: string[] }
  /** The client's history does not hold the result. */
  | { kind: "unknown" }
  | { kind: "error"; code: ServerToolError };

/** The beginning of the id of a call whose result the upstream did not tell. */
const untold = "srvtoolu_untold_";

/** A new id, in the form of Anthropic's, for a call and its result. */
export const serverCallId = (output: ServerToolOutput): string =>
  `${output.kind === "unknown" ? untold : "srvtoolu_"}${randomId().slice(0, 24)}`;

/** Whether an empty list of pages in the client's history stands for pages that are not known. */
export const isUntold = (id: string): boolean => id.startsWith(untold);

/** What a search found. */
export interface WebFindings {
  pages: WebPage[];
  /** An answer to the query that names no page. Only the model gets it: clients have no place for it. */
  report?: string;
}

/** A page that a search found. */
export interface WebPage {
  url: string;
  title: string;
  /** What it says about the query. */
  text?: string;
  /** When it was published, in the engine's words. */
  age?: string;
}

/** A page that a text of the reply refers to. */
export interface Citation {
  url: string;
  title: string;
  /** The place in the block's text, in UTF-16 units. */
  start: number;
  end: number;
  /** The page's own words. */
  quote: string;
}

/** Anthropic's codes, which clients know, and what the model is told. */
export const errorSentences = {
  invalid_tool_input: "The input of this call is not valid.",
  query_too_long: "The query is too long. Use fewer words.",
  max_uses_exceeded: "This tool may not be used again in this reply. Answer with what is known.",
  too_many_requests: "There were too many requests. Do not try again; answer with what is known.",
  unavailable: "The tool is not available now. Do not try again; answer with what is known.",
} as const;
export type ServerToolError = keyof typeof errorSentences;

/** Undefined for a code that is not known. */
export const serverToolError = (code: unknown): ServerToolError | undefined =>
  (Object.keys(errorSentences) as ServerToolError[]).find((known) => known === code);
