/** What a path of Google's asks of a model: the end of the path names it. */
import { z } from "zod";
import { parseInput } from "../../lib/input";
import { lazy } from "../../lib/lazy";
import type { Scope } from "../../parts/app";
import type { KeyedCaller } from "../../people/keys/client-keys";
import { countTokens } from "../../proxy/relay/count-tokens";
import { relay } from "../../proxy/relay/relay";
import type { Description } from "../../web/described";
import { upstreamErrors } from "../descriptions";

export interface Method extends Description {
  answer(asked: Asked, model: string): Promise<Response>;
}

interface Asked {
  scope: Scope;
  request: Request;
  caller: KeyedCaller;
  query: Record<string, string>;
}

/** The members of a request in Google's format that dragoman reads besides the address. */
const googleBody = lazy(() => z.looseObject({}).describe("In Google's own form."));

const googleStreamQuery = lazy(() =>
  z.object({
    alt: z
      .enum(["sse", "json"])
      .optional()
      .describe("`sse`: server-sent events; otherwise one JSON array, sent as it grows."),
  }),
);

const relayed = {
  dialect: "gemini",
  reads: googleBody,
  errors: ["not_found", ...upstreamErrors],
  reference: "https://ai.google.dev/api/generate-content",
} as const;

/** The methods of a model. */
export const methods: Readonly<Record<string, Method>> = {
  generateContent: {
    ...relayed,
    about: "An answer in Google's format.",
    answers: () => z.looseObject({}),
    answer: ({ scope, request, caller }, model) => relay(scope, request, caller, "gemini", { model, stream: false }),
  },
  streamGenerateContent: {
    ...relayed,
    about: "The same, streamed: as server-sent events with `?alt=sse`, otherwise as one JSON array.",
    query: googleStreamQuery,
    answers: () => ({
      "text/event-stream": z.string().describe("With `alt=sse`."),
      "application/json": z.array(z.looseObject({})),
    }),
    async answer({ scope, request, caller, query }, model) {
      const { alt } = parseInput(query, googleStreamQuery());
      return relay(scope, request, caller, "gemini", { model, stream: true, alt });
    },
  },
  countTokens: {
    dialect: "gemini",
    about:
      "Input tokens of contents, or of a whole request: with the factor learned for the model, or estimated; `x-token-count` says which.",
    reads: googleBody,
    answers: () => z.object({ totalTokens: z.int() }),
    answer: ({ scope, request, caller }, model) => countTokens(scope, request, caller, "gemini", { model }),
  },
};
