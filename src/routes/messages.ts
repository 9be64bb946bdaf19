/** Anthropic's Messages. */
import { Elysia } from "elysia";
import { countTokens } from "../proxy/relay/count-tokens";
import { relay } from "../proxy/relay/relay";
import { access } from "../web/access";
import { described } from "../web/described";
import { countSchema, dialectBody, relayed } from "./descriptions";

export const messages = new Elysia({ name: "messages" })
  .use(access)
  .post("/messages", ({ scope, request, caller }) => relay(scope, request, caller, "messages"), {
    access: "models",
    detail: described({
      ...relayed,
      dialect: "messages",
      about: "Messages, full or streamed.",
      reference: "https://docs.claude.com/en/api/messages",
    }),
  })
  .post("/messages/count_tokens", ({ scope, request, caller }) => countTokens(scope, request, caller, "messages"), {
    access: "models",
    detail: described({
      dialect: "messages",
      about:
        "Input tokens of a messages request: exact with an Anthropic key or where GitHub Copilot counts them, otherwise with the factor learned for the model, or estimated; `x-token-count` says which.",
      reads: dialectBody,
      answers: countSchema,
    }),
  });
