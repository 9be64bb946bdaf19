/** OpenAI's Responses, and what Codex asks besides. */
import { Elysia } from "elysia";
import { z } from "zod";
import { compactConversation } from "../proxy/relay/compact";
import { countTokens } from "../proxy/relay/count-tokens";
import { relay } from "../proxy/relay/relay";
import { search } from "../proxy/relay/search";
import { access } from "../web/access";
import { described } from "../web/described";
import { countSchema, dialectBody, relayed, upstreamErrors } from "./descriptions";

export const responses = new Elysia({ name: "responses" })
  .use(access)
  .post("/responses", ({ scope, request, caller }) => relay(scope, request, caller, "responses"), {
    access: "models",
    detail: described({
      ...relayed,
      dialect: "responses",
      about: "Responses, full or streamed.",
      reference: "https://platform.openai.com/docs/api-reference/responses/create",
    }),
  })
  .post("/responses/compact", ({ scope, request, caller }) => compactConversation(scope, request, caller), {
    access: "models",
    detail: described({
      dialect: "responses",
      about: "A conversation in short: the newest messages of the user, and a summary that the model writes.",
      reads: dialectBody,
      answers: () => z.looseObject({}),
      errors: upstreamErrors,
      reference: "https://platform.openai.com/docs/api-reference/responses/compact",
    }),
  })
  .post("/responses/input_tokens", ({ scope, request, caller }) => countTokens(scope, request, caller, "responses"), {
    access: "models",
    detail: described({
      dialect: "responses",
      about:
        "Input tokens of a responses request, estimated here with the factor learned for the model, if there is one.",
      reads: dialectBody,
      answers: () => countSchema().extend({ object: z.literal("response.input_tokens") }),
      reference: "https://platform.openai.com/docs/api-reference/responses/input-tokens",
    }),
  })
  // Codex calls it where it takes dragoman for OpenAI.
  .post("/alpha/search", ({ scope, request, caller }) => search(scope, request, caller), {
    access: "models",
    detail: described({
      dialect: "responses",
      about: "Web searches for Codex: its commands are answered with one text.",
      reads: () => z.looseObject({ commands: z.looseObject({}) }).describe("As Codex sends it."),
      answers: () => z.object({ output: z.string() }),
      errors: ["rate_limit"],
    }),
  });
