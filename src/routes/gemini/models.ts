/** The model list in Google's format. */
import type { z } from "zod";
import { encodeModel } from "../../dialects/gemini/model-list";
import type { Scope } from "../../parts/app";
import { type ClientKey, requireModel } from "../../people/keys/client-keys";
import { findNamedModel } from "../../proxy/relay/named-model";
import { allModels } from "../../proxy/upstream/models/all-models";
import type { Model } from "../../proxy/upstream/models/model";
import { clientLimitsOf } from "../../proxy/upstream/models/prompt-limit";
import { methodNotAllowed } from "../../web/paths";
import { freshness, type googleModelsQuery, type ListForm, mayAsk, usablePage } from "../models";
import { methods } from "./methods";

/** For Google's clients, where they ask at the paths of other lists: the headers are those of its packages. */
export const googleForm: ListForm = {
  isAsked: ({ headers }) => headers.has("x-goog-api-client") || headers.has("x-goog-api-key"),
  list: listGoogleModels,
  get: getGoogleModel,
  refuse(name) {
    const end = name.lastIndexOf(":");
    if (end > 0 && Object.hasOwn(methods, name.slice(end + 1))) throw methodNotAllowed("GET", ["POST"]);
  },
};

/** `GET /v1beta/models`: the same models in Google's format; paged if `pageSize` is given. */
export async function listGoogleModels(
  app: Scope,
  key: ClientKey | undefined,
  { pageSize, pageToken }: z.infer<ReturnType<typeof googleModelsQuery>>,
): Promise<Response> {
  const { current, page, hasMore } = await usablePage(app, key, pageSize, { name: "pageToken", id: pageToken });
  const last = hasMore ? { nextPageToken: page.at(-1)?.id } : {};
  return Response.json(
    { models: page.map((model) => googleModel(app, model)), ...last },
    { headers: freshness(current) },
  );
}

/** `GET /v1beta/models/:model` */
export async function getGoogleModel(app: Scope, key: ClientKey | undefined, name: string): Promise<Response> {
  const current = await allModels(app, "current");
  const { model } = await findNamedModel(app, { name, client: "gemini" });
  if (!mayAsk(key, model.id, current.models)) requireModel(key, model.id);
  return Response.json(googleModel(app, model), { headers: freshness(current) });
}

function googleModel({ config }: Scope, model: Model) {
  const { id, name, kind, limits, supports } = model;
  const { prompt } = clientLimitsOf(model, config.current);
  const thinks = supports.adaptiveThinking || supports.thinkingBudget !== undefined || supports.efforts.length > 0;
  return encodeModel({
    id,
    name,
    kind: kind === "embeddings" ? kind : "chat",
    prompt,
    output: limits.output,
    thinks,
  });
}
