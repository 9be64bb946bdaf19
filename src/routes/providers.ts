/** A provider's own paths, passed through as they are. */
import { Elysia } from "elysia";
import { z } from "zod";
import { countForProvider } from "../proxy/relay/count-tokens";
import { listProviderModels } from "../proxy/relay/provider-models";
import { relayToProvider } from "../proxy/relay/relay";
import { access } from "../web/access";
import { described } from "../web/described";
import { countSchema, dialectBody, relayed, upstreamErrors } from "./descriptions";

export const providers = new Elysia({ name: "providers", prefix: "/:provider/v1" })
  .use(access)
  .post("/messages", ({ scope, request, caller, params }) => relayToProvider(scope, request, caller, params.provider), {
    access: "models",
    detail: described({
      ...relayed,
      dialect: "messages",
      about: "Messages of a provider that offers the Messages API, full or streamed, passed through as they are.",
      errors: ["not_found", ...upstreamErrors],
      reference: "https://docs.claude.com/en/api/messages",
    }),
  })
  .post(
    "/messages/count_tokens",
    ({ scope, request, caller, params }) => countForProvider(scope, request, caller, params.provider),
    {
      access: "models",
      detail: described({
        dialect: "messages",
        about: "Input tokens of a messages request, always estimated here.",
        reads: dialectBody,
        answers: countSchema,
        errors: ["not_found"],
      }),
    },
  )
  .get(
    "/models",
    ({ scope, request, caller, params }) => listProviderModels(scope, request, caller.key, params.provider),
    {
      access: "models",
      detail: described({
        dialect: "messages",
        about: "The provider's own model list.",
        answers: () => z.looseObject({}),
        errors: ["not_found", ...upstreamErrors],
      }),
    },
  );
