/** How upstreams of the dialects differ in what they take; `adapt.ts` fits a conversation to it. */
import type { Dialect } from "./conversation";

interface UpstreamFacts {
  /** How many tools an upstream takes at most. */
  toolLimit: number;
  /** Tools may stand in lists within a request. A list counts as one tool, and may repeat a tool. */
  hasToolLists?: true;
  /** There are tools whose input is a text in place of JSON. */
  hasFreeformTools?: true;
  /** Models may search for tools that are not in the prompt. */
  mayHaveToolSearch?: true;
  /** The schema of a reply may be of any type, not only an object's. */
  takesAnySchema?: true;
}

/** OpenAI: "array too long. Expected an array with maximum length 128". */
const openaiTools = 128;

export const upstreamFacts: Readonly<Record<Dialect, UpstreamFacts>> = {
  chat: { toolLimit: openaiTools },
  responses: {
    toolLimit: openaiTools,
    hasToolLists: true,
    hasFreeformTools: true,
    mayHaveToolSearch: true,
  },
  messages: {
    toolLimit: Number.POSITIVE_INFINITY,
    mayHaveToolSearch: true,
    takesAnySchema: true,
  },
};
