/** A provider's own model list. */
import { ProxyError } from "../../lib/errors";
import { isObject, parseJson } from "../../lib/json";
import { readText } from "../../lib/net/out/body";
import { type ClientKey, hasModelLimits, mayUse } from "../../people/keys/client-keys";
import type { RequestScope } from "../scope";
import { passedDown } from "../upstream/providers/provider";
import { readProviderError } from "../upstream/providers/provider-error";
import { messagesProvider } from "./target";

/** Bytes. */
const providerListLimit = 8 * 1024 * 1024;

/** `GET /:provider/v1/models`: the provider's own list, unchanged unless the key may use only some of the models. */
export async function listProviderModels(
  app: RequestScope,
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
