/**
 * Google's paths end in a model and a method: `/v1beta/models/:model:generateContent`. The model may have slashes, so the router
 * has a wildcard there, and the name is read here.
 */
import { Elysia } from "elysia";
import { z } from "zod";
import { ProxyError } from "../../lib/errors";
import { lazy } from "../../lib/lazy";
import { access } from "../../web/access";
import { described, describedForms } from "../../web/described";
import { methodNotAllowed } from "../../web/paths";
import { upstreamErrors } from "../descriptions";
import { googleModelsQuery } from "../models";
import { type Method, methods } from "./methods";
import { getGoogleModel, listGoogleModels } from "./models";

const unknownMethod = (name: string) =>
  new ProxyError(
    "not_found",
    `There is no method \`${name.slice(0, 60)}\` of a model here; the methods are ${Object.keys(methods).join(", ")}.`,
  );

/**
 * @param encoded What follows the router's path, percent-encoded.
 * @returns The model, and the method, if the name ends in one. `end` is what follows the last colon, if anything does.
 * @throws ProxyError `invalid_request` for a name that does not decode.
 */
function readName(encoded: string): { model: string; method?: Method; end?: string } {
  const name = decoded(encoded);
  const colon = name.lastIndexOf(":");
  if (colon <= 0) return { model: name };
  const end = name.slice(colon + 1);
  return Object.hasOwn(methods, end)
    ? { model: name.slice(0, colon), method: methods[end], end }
    : { model: name, end };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ProxyError(
      "invalid_request",
      "The model in this path does not decode: it is not percent-encoded UTF-8.",
      { param: "model" },
    );
  }
}

/** Google's packages from version 3 on expect them below `/v1` too. */
export const geminiMethods = new Elysia({ name: "gemini-methods" }).use(access).post(
  "/models/*",
  ({ scope, request, caller, params, query }) => {
    const { model, method, end } = readName(params["*"]);
    if (method) return method.answer({ scope, request, caller, query }, model);
    if (end !== undefined) throw unknownMethod(end);
    throw methodNotAllowed("POST", ["GET", "HEAD"]);
  },
  {
    access: "google",
    detail: describedForms(
      Object.fromEntries(Object.entries(methods).map(([name, method]) => [`:model:${name}`, method])),
    ),
  },
);

const googleModelSchema = lazy(() =>
  z
    .looseObject({ name: z.string(), displayName: z.string(), supportedGenerationMethods: z.array(z.string()) })
    .meta({ id: "GoogleModel" }),
);

export const gemini = new Elysia({ name: "gemini" })
  .use(access)
  .use(geminiMethods)
  .get("/models", ({ scope, caller, query }) => listGoogleModels(scope, caller.key, query), {
    access: "google",
    query: z.lazy(googleModelsQuery),
    detail: described({
      dialect: "gemini",
      about: "The models your accounts can use now, in Google's format.",
      answers: () =>
        z.object({
          models: z.array(googleModelSchema()),
          nextPageToken: z.string().optional(),
        }),
      errors: upstreamErrors,
    }),
  })
  .get(
    "/models/*",
    ({ scope, caller, params }) => {
      const { model, method } = readName(params["*"]);
      if (method) throw methodNotAllowed("GET", ["POST"]);
      return getGoogleModel(scope, caller.key, model);
    },
    {
      access: "google",
      detail: describedForms({
        ":model": {
          dialect: "gemini",
          about: "One model in Google's format.",
          answers: googleModelSchema,
          errors: ["not_found", ...upstreamErrors],
        },
      }),
    },
  );
