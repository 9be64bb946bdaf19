/** One request to a provider from the config: passed through unchanged, and recorded in the history. */

import { type App, callLimits } from "../app";
import { codecs } from "../dialects/codecs";
import { asProxyError, ProxyError } from "../errors";
import { isObject, parseJson } from "../json";
import { type KeyedCaller, requireModel } from "../keys/client-keys";
import { type CallResponse, readStart } from "../net/body";
import { kindOf } from "../upstream/failure";
import { statusOf } from "../upstream/failure-rows";
import { type Provider, type ProviderCall, passedDown } from "../upstream/provider";
import { clientSession } from "./affinity-keys";
import { readFacts, readIncoming } from "./incoming";
import { providerPassthrough } from "./provider-passthrough";
import { openRequestRecord, type RecordParts, type RequestRecord } from "./request-record";
import { BrokenReply, type RespondParts, respondFull, respondStream } from "./respond";
import { providerTarget } from "./target";

type ProviderParts = Pick<App, "providers"> & RecordParts & RespondParts;

/** @throws ProxyError for the server to send; its row is written, except for an unknown provider. */
export async function relayToProvider(
  parts: ProviderParts,
  request: Request,
  caller: KeyedCaller,
  name: string,
): Promise<Response> {
  const provider = parts.providers.find(name);
  const record = openRequestRecord(parts, request, caller, "messages");
  try {
    const incoming = await readIncoming(request, codecs.messages.longTexts);
    caller.connection.keepOpen();
    record.setRequest(incoming);
    requireModel(caller.key, `${name}/${incoming.model}`);
    record.setTarget(providerTarget(provider, incoming.model), readFacts(codecs.messages, incoming, request.headers));
    const call = providerPassthrough(incoming, record, provider.who);
    record.setSession(clientSession(request.headers, codecs.messages.session?.(incoming.body)));
    await record.budget.reserve(null);
    const response = await callProvider(parts, provider, record, {
      path: "/v1/messages",
      request,
      body: call.body,
      controller: record.controller,
      limits: callLimits(parts.limits, call.stream),
    });
    if (!response.ok) return await respondError(provider, response, record);
    const answer = incoming.stream
      ? await respondStream(parts, { response, call, record, clientGone: request.signal })
      : await respondFull({ response, call, record });
    return await record.budget.addTo(withHeaders(answer, response));
  } catch (thrown) {
    throw record.fail(thrown instanceof BrokenReply ? errorOf(thrown) : thrown);
  }
}

/** The error that a provider sent in place of a reply, with the status that its code stands for. */
function errorOf({ error: { code, message } }: BrokenReply): ProxyError {
  const status = statusOf(code);
  // A client would take a 401 or 403 for an answer to its own key.
  if (status === 401 || status === 403) return new ProxyError("upstream", message, { code });
  return new ProxyError(kindOf(status), message, { code, status });
}

async function callProvider(
  { logger }: Pick<App, "logger">,
  provider: Provider,
  record: RequestRecord,
  call: ProviderCall,
): Promise<CallResponse> {
  let sentAt = performance.now();
  const elapsedMs = () => Math.round(performance.now() - sentAt);
  try {
    const response = await provider.call({
      ...call,
      retried: (code) => logger.debug(`The connection to ${provider.name} failed (${code}); connecting again.`),
      resent(error) {
        record.addAttempt(null, error, elapsedMs());
        sentAt = performance.now();
      },
    });
    record.addAttempt(null, response.status, elapsedMs());
    return response;
  } catch (thrown) {
    record.addAttempt(null, asProxyError(thrown), elapsedMs());
    throw thrown;
  }
}

/** Passes the provider's own error on where it is JSON. The request has failed either way. */
async function respondError(provider: Provider, response: CallResponse, record: RequestRecord): Promise<Response> {
  const { error, text } = await readProviderError(provider, response);
  if (text === undefined) throw error;
  record.fail(error);
  return withHeaders(
    new Response(text, { status: response.status, headers: { "content-type": "application/json" } }),
    response,
  );
}

/**
 * Reads a provider's error answer. A client would take a 401 or 403 for an answer to its own key, so the error says which
 * key was refused.
 * @returns With `text` where the client may be given the answer as it is.
 */
export async function readProviderError(
  provider: Provider,
  response: CallResponse,
): Promise<{ error: ProxyError; text?: string }> {
  const { status } = response;
  const text = provider.withoutKey(await readStart(response, maxErrorBytes));
  const { ownMessage, isJson } = readErrorBody(text);
  const headers = Object.fromEntries(passedDown(response.headers));
  if (status === 401 || status === 403) {
    const reason = ownMessage === undefined ? "" : `, and says: ${ownMessage}`;
    const message = `${provider.who} refused the configured credential (status ${status})${reason}`;
    return {
      error: new ProxyError("upstream", withFullStop(message), { code: "provider_refused", headers: doNotRetry }),
    };
  }
  const message = ownMessage ?? `${provider.who} answered with status ${status}.`;
  const error = new ProxyError(kindOf(status), message, { status, headers });
  return isJson ? { error, text } : { error };
}

const maxErrorBytes = 64 * 1024;

/** A retry cannot help before the owner has corrected the config. */
const doNotRetry = { "x-should-retry": "false" };

function readErrorBody(text: string): { ownMessage?: string; isJson: boolean } {
  const json = parseJson(text);
  const error = isObject(json) && isObject(json.error) ? json.error : json;
  const message = isObject(error) && typeof error.message === "string" ? error.message.trim().slice(0, 1000) : "";
  return { ownMessage: message || undefined, isJson: isObject(json) };
}

const withFullStop = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);

function withHeaders(answer: Response, from: Pick<CallResponse, "headers">): Response {
  for (const [name, value] of passedDown(from.headers)) answer.headers.set(name, value);
  return answer;
}
