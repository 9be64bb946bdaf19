/** A provider's own paths, passed through as they are. */
import { Elysia } from "elysia";
import { z } from "zod";
import { tokenCountFormats } from "../dialects/codecs";
import { ProxyError } from "../lib/errors";
import { isObject, parseJson } from "../lib/json";
import { readText } from "../lib/net/out/body";
import type { Scope } from "../parts/app";
import { type ClientKey, hasModelLimits, type KeyedCaller, mayUse, requireModel } from "../people/keys/client-keys";
import { readIncoming } from "../proxy/relay/incoming";
import { relayToProvider } from "../proxy/relay/relay";
import { messagesProvider } from "../proxy/relay/target";
import { passedDown } from "../proxy/upstream/providers/provider";
import { readProviderError } from "../proxy/upstream/providers/provider-error";
import { access } from "../web/access";
import { described } from "../web/described";
import { countHere } from "./count-tokens";
import { relayed, upstreamErrors } from "./descriptions";
import { countSchema, dialectBody } from "./schemas";

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

/** `POST /:provider/v1/messages/count_tokens`: estimated here, without a call to the provider. */
async function countForProvider(app: Scope, request: Request, caller: KeyedCaller, name: string): Promise<Response> {
  messagesProvider(app, name);
  const { body, model } = await readIncoming(request);
  await caller.key?.hear?.();
  caller.connection.keepOpen();
  requireModel(caller.key, `${name}/${model}`);
  const { decode, encode } = tokenCountFormats.messages;
  return countHere(app, encode, decode(body));
}

/** Bytes. */
const providerListLimit = 8 * 1024 * 1024;

/** `GET /:provider/v1/models`: the provider's own list, unchanged unless the key may use only some of the models. */
async function listProviderModels(
  app: Scope,
  request: Request,
  key: ClientKey | undefined,
  name: string,
): Promise<Response> {
  const provider = messagesProvider(app, name);
  const limits = app.limits.stream;
  const response = await provider.call({ operation: "list", request, passesHeaders: true, limits });
  if (!response.ok) throw (await readProviderError(provider, response)).error;
  const text = await readText(response, providerListLimit);
  const list = parseJson(text);
  if (!isObject(list)) throw new ProxyError("upstream", `${provider.who}'s answer holds no model list.`);
  return new Response(hasModelLimits(key) ? JSON.stringify(allowedOf(list, key, name)) : text, {
    headers: [...passedDown(provider, response.headers), ["content-type", "application/json"]],
  });
}

function allowedOf(list: Record<string, unknown>, key: ClientKey, provider: string): object {
  const data = Array.isArray(list.data) ? list.data : [];
  return { ...list, data: data.filter((model) => isObject(model) && mayUse(key, `${provider}/${model.id}`)) };
}
