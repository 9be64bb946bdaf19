/** One request to a provider from the config: passed through unchanged, and recorded in the history. */

import { clientPaths } from "../api-paths";
import { type App, callLimits } from "../app";
import { codecs } from "../dialects/codecs";
import { ProxyError } from "../errors";
import { type KeyedCaller, requireModel } from "../keys/client-keys";
import type { CallResponse } from "../net/out/body";
import type { Provider } from "../upstream/providers/provider";
import { clientSession } from "./affinity-keys";
import { readFacts, readIncoming } from "./incoming";
import { providerPassthrough } from "./provider-passthrough";
import { callProvider, errorOfBroken, readProviderError, withHeaders } from "./provider-send";
import { openRequestRecord, type RecordParts, type RequestRecord } from "./request-record";
import { BrokenReply, type RespondParts, respondFull, respondStream } from "./respond";
import { providerTarget, requireFurtherModels } from "./target";

type ProviderParts = Pick<App, "providers" | "providerModels"> & RecordParts & RespondParts;

/** @throws ProxyError for the server to send; its row is written, except for an unknown provider. */
export async function relayToProvider(
  parts: ProviderParts,
  request: Request,
  caller: KeyedCaller,
  name: string,
): Promise<Response> {
  const provider = messagesProvider(parts, name);
  const record = openRequestRecord(parts, request, caller, "messages");
  try {
    const incoming = await readIncoming(request, codecs.messages.longTexts, undefined, record.held);
    caller.connection.keepOpen();
    record.setRequest(incoming);
    requireModel(caller.key, `${name}/${incoming.model}`);
    requireFurtherModels(caller.key, provider, incoming.body);
    record.setTarget(
      providerTarget(parts, provider, incoming.model),
      readFacts(codecs.messages, incoming, request.headers),
    );
    const call = providerPassthrough(incoming, record, provider.who);
    record.setSession(clientSession(request.headers, codecs.messages.session?.(incoming.body)));
    await record.budget.reserve(null);
    const response = await callProvider(parts, provider, record, {
      operation: "generate",
      request,
      passesHeaders: true,
      body: call.body,
      controller: record.controller,
      limits: callLimits(parts.limits, call.stream),
    });
    if (!response.ok) return await respondError(provider, response, record);
    const answer = incoming.stream
      ? await respondStream(parts, {
          response,
          call,
          record,
          clientGone: request.signal,
          connection: caller.connection,
        })
      : await respondFull({ response, call, record });
    return await record.budget.addTo(withHeaders(answer, provider, response));
  } catch (thrown) {
    throw record.fail(thrown instanceof BrokenReply ? errorOfBroken(thrown) : thrown);
  }
}

/** A provider that can be called at paths of its own. @throws ProxyError `not_found` */
export function messagesProvider({ providers }: Pick<App, "providers">, name: string): Provider {
  const provider = providers.find(name);
  if (provider.dialect === "messages") return provider;
  throw new ProxyError(
    "not_found",
    `${provider.who} has no paths of its own, because it does not offer the Messages API: use its models at ${clientPaths.messages} and the other paths as \`${name}/<model>\`.`,
    { code: "provider_not_found" },
  );
}

/** Passes the provider's own error on where it is JSON. The request has failed either way. */
async function respondError(provider: Provider, response: CallResponse, record: RequestRecord): Promise<Response> {
  const { error, text, passes } = await readProviderError(provider, response);
  if (!passes) throw error;
  record.fail(error);
  return withHeaders(
    new Response(text, { status: response.status, headers: { "content-type": "application/json" } }),
    provider,
    response,
  );
}
