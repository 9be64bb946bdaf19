/** The model list: one answer that both OpenAI's and Anthropic's SDKs accept, with the limits that clients ask about. */

import { z } from "zod";
import { idForClaudeCode, isClaudeCode } from "../clients/claude-code-names";
import { ProxyError } from "../lib/errors";
import { wholeNumber } from "../lib/input";
import { lazy } from "../lib/lazy";
import type { Scope } from "../parts/app";
import { type ClientKey, mayUse, requireModel } from "../people/keys/client-keys";
import { isAutoName } from "../proxy/upstream/copilot/auto-model";
import { allModels } from "../proxy/upstream/models/all-models";
import type { CurrentModels } from "../proxy/upstream/models/catalogue";
import { codexCatalogue } from "../proxy/upstream/models/codex-catalogue";
import type { Model } from "../proxy/upstream/models/model";
import { aliasOf, findListed, findModel } from "../proxy/upstream/models/model-name";
import { listedModel } from "../proxy/upstream/models/model-view";

export const modelsQuery = lazy(() =>
  z.object({
    limit: wholeNumber()
      .refine((count) => count > 0, "must be at least 1")
      .meta({ minimum: 1 })
      .optional()
      .describe("Models on a page; all when missing."),
    after_id: z.string().optional().describe("The page begins after this model."),
    client_version: z.string().optional().describe("Codex says its version: it gets all models in its own form."),
  }),
);

export const googleModelsQuery = lazy(() =>
  z.object({
    pageSize: modelsQuery().shape.limit,
    pageToken: z.string().optional().describe("The `nextPageToken` of the page before."),
  }),
);

/** All clients ask for their lists at one path. */
export const listQuery = lazy(() => modelsQuery().extend(googleModelsQuery().shape));

/**
 * `GET /v1/models`: the models that the key may use, as the upstream lists them now; paged if `limit` or `after_id` is given.
 * Claude Code gets the models that it can use, under names that it takes.
 */
export async function listModels(
  app: Scope,
  request: Request,
  key: ClientKey | undefined,
  { limit, after_id, client_version }: z.infer<ReturnType<typeof modelsQuery>>,
): Promise<Response> {
  if (client_version !== undefined) return listCodexModels(app, key);
  const { current, page, hasMore } = await usablePage(app, key, limit, { name: "after_id", id: after_id });
  const all = page.map((model) => listedModel(model, app.config.current));
  const forClaudeCode = () => {
    const chats = all.filter(({ kind }) => kind === "chat");
    const offered = chats.filter((model) => model.model_picker_enabled);
    // Its list shows names only: a model and its dated twin would look the same.
    return (offered.length > 0 ? offered : chats).map((model) => ({ ...model, id: idForClaudeCode(model.id) }));
  };
  return Response.json(
    {
      object: "list",
      data: isClaudeCode(request.headers.get("user-agent")) ? forClaudeCode() : all,
      has_more: hasMore,
      first_id: page[0]?.id ?? null,
      last_id: page.at(-1)?.id ?? null,
    },
    { headers: freshness(current) },
  );
}

/** For Codex, which says its version: all models in its own form. */
async function listCodexModels(app: Scope, key: ClientKey | undefined): Promise<Response> {
  const { current, page } = await usablePage(app, key, undefined, { name: "after_id", id: undefined });
  return Response.json(codexCatalogue(page, app.config.current), { headers: freshness(current) });
}

/**
 * A page of the models that the key may use.
 * @param after The id of the model before the page, and the parameter that names it.
 * @throws ProxyError `invalid_request` if no such model is in the list: from the beginning again, a client would never end.
 */
export async function usablePage(
  app: Scope,
  key: ClientKey | undefined,
  size: number | undefined,
  after: { name: string; id: string | undefined },
) {
  const current = await allModels(app, "current");
  const all = current.models.filter(
    (model) =>
      model.enabled && (model.kind === "chat" || model.kind === "embeddings") && mayAsk(key, model.id, current.models),
  );
  const start = after.id ? all.findIndex(({ id }) => id === after.id) + 1 : 0;
  if (after.id && start === 0)
    throw new ProxyError(
      "invalid_request",
      `There is no model \`${after.id.slice(0, 100)}\` in this list, so no page begins after it: begin again without \`${after.name}\`.`,
      { param: after.name },
    );
  const page = all.slice(start, size && start + size);
  return { current, page, hasMore: start + page.length < all.length };
}

/** Auto may be asked for with a key that may use something that it could choose. */
export const mayAsk = (key: ClientKey | undefined, id: string, listed: readonly Model[]): boolean =>
  mayUse(key, id) || (isAutoName(id) && listed.some(({ id: other, kind }) => kind === "chat" && mayUse(key, other)));

/** `GET /v1/models/:id`. The id may have any form that a request may use. */
export async function getModel(app: Scope, key: ClientKey | undefined, id: string): Promise<Response> {
  const { modelAliases } = app.config.current;
  const alias = aliasOf(id, modelAliases) ?? id;
  // The providers are asked for a model of theirs only.
  const isProvided = [id, alias].some((name) => app.providers.findByModel(name) !== undefined);
  const current = isProvided ? await allModels(app, "current") : await app.catalogue.current();
  // A provider's model can be used although it is not listed, if its list is not known.
  const model =
    findListed(id, current.models) ?? (await unlistedModel(app, alias)) ?? findModel(id, current.models, modelAliases);
  if (!mayAsk(key, model.id, current.models)) requireModel(key, model.id);
  return Response.json(listedModel(model, app.config.current), { headers: freshness(current) });
}

async function unlistedModel({ providerModels }: Scope, id: string): Promise<Model | undefined> {
  const found = await providerModels.find(id);
  return found && !(await providerModels.all()).complete.has(found.provider.name) ? found.model : undefined;
}

/** Whether the list is current, or the last one known, and its age in seconds (RFC 9111, section 5.1). */
export const freshness = ({ stale, age }: CurrentModels) => ({
  "x-model-list": stale ? "stale" : "current",
  age: String(Math.floor(age / 1000)),
});

/** What other clients get at the paths of this list. */
export interface ListForm {
  isAsked(request: Request): boolean;
  list(app: Scope, key: ClientKey | undefined, query: z.infer<ReturnType<typeof listQuery>>): Promise<Response>;
  get(app: Scope, key: ClientKey | undefined, id: string): Promise<Response>;
  /** @throws ProxyError 405 for a name that means something else to these clients: other clients do not end a name like that. */
  refuse(id: string): void;
}
