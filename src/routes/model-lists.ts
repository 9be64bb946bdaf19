/** The list of models, of which OpenAI's, Anthropic's and Google's clients all ask at the same path. */
import { Elysia } from "elysia";
import { z } from "zod";
import { listedModelSchema } from "../proxy/upstream/models/model-view";
import { access } from "../web/access";
import { described } from "../web/described";
import { upstreamErrors } from "./descriptions";
import { googleForm } from "./gemini/models";
import { getModel, type ListForm, listModels, listQuery } from "./models";

const forms: readonly ListForm[] = [googleForm];

const formFor = (request: Request) => forms.find((form) => form.isAsked(request));

export const modelLists = new Elysia({ name: "model-lists" })
  .use(access)
  .get(
    "/models",
    ({ scope, request, caller, query }) =>
      formFor(request)?.list(scope, caller.key, query) ?? listModels(scope, request, caller.key, query),
    {
      access: "models",
      query: z.lazy(listQuery),
      detail: described({
        about:
          "The models your accounts can use now, with limits and endpoints; `x-model-list: stale` if the upstream does not answer and this is its last list. Google's clients get Google's format; Claude Code gets names that it takes, and Codex its own form.",
        answers: () =>
          z.object({
            object: z.literal("list"),
            data: z.array(listedModelSchema()),
            has_more: z.boolean(),
            first_id: z.string().nullable(),
            last_id: z.string().nullable(),
          }),
        errors: upstreamErrors,
      }),
    },
  )
  .get(
    "/models/:id",
    ({ scope, request, caller, params }) => {
      for (const form of forms) form.refuse(params.id);
      return (formFor(request)?.get ?? getModel)(scope, caller.key, params.id);
    },
    {
      access: "models",
      detail: described({
        about: "One model. The id may have any form that a request may use.",
        answers: listedModelSchema,
        errors: ["not_found", ...upstreamErrors],
      }),
    },
  );
