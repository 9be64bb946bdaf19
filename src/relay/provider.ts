/** One request to a provider that the owner configured: passed through, watched for the history, and nothing of ours touched. */

import { type App, callLimits } from "../app";
import { codecs } from "../dialects/codecs";
import { asProxyError, ProxyError } from "../errors";
import { isObject, parseJson } from "../json";
import { type CallResponse, readStart } from "../net/body";
import type { Visitor } from "../net/guard";
import { kindOf } from "../upstream/failure";
import { statusOf } from "../upstream/failure-rows";
import { type Provider, type ProviderCall, passedDown } from "../upstream/provider";
import { readFacts, readIncoming } from "./incoming";
import { untouched } from "./passthrough";
import { openRequestRecord, type RequestRecord } from "./request-record";
import { BrokenReply, respondFull, respondStream } from "./respond";
import { providerTarget } from "./target";

/** @throws ProxyError for the door to speak; but for an unknown provider its row is written. */
export async function relayToProvider(app: App, request: Request, caller: Visitor, name: string): Promise<Response> {
  const provider = app.providers.find(name);
  const record = openRequestRecord(app, request, caller, "messages");
  try {
    const incoming = await readIncoming(request);
    caller.keepOpen();
    record.setRequest(incoming);
    record.setTarget(
      providerTarget(provider, incoming.model),
      readFacts(codecs.messages, incoming.body, request.headers),
    );
    const call = untouched(incoming, record, provider.who);
    const response = await ask(
      app,
      provider,
      {
        path: "/v1/messages",
        request,
        body: call.body,
        signal: record.signal,
        limits: callLimits(app.limits, call.stream),
      },
      record,
    );
    if (!response.ok) return await answerRefusal(provider, response, record);
    const answer = incoming.stream
      ? await respondStream(app, response, call, record, request.signal)
      : await respondFull(response, call, record);
    return withHeaders(answer, response);
  } catch (thrown) {
    throw record.fail(thrown instanceof BrokenReply ? errorOf(thrown) : thrown);
  }
}

/** An error that the provider told in place of a reply: its words and code, with the status these stand for. */
function errorOf({ told: { code, message } }: BrokenReply): ProxyError {
  const status = statusOf(code);
  // A client would take these for an answer to its own key.
  if (status === 401 || status === 403) return new ProxyError("upstream", message, { code });
  return new ProxyError(kindOf(status), message, { code, status });
}

async function ask(app: App, provider: Provider, call: ProviderCall, exchange: RequestRecord): Promise<CallResponse> {
  let sentAt = performance.now();
  const took = () => Math.round(performance.now() - sentAt);
  try {
    const response = await provider.call({
      ...call,
      retried: (why) => app.logger.debug(`Connection to ${provider.name} made a second time: ${why}.`),
      resent(error) {
        exchange.addAttempt(null, error, took());
        sentAt = performance.now();
      },
    });
    exchange.addAttempt(null, response.status, took());
    return response;
  } catch (thrown) {
    exchange.addAttempt(null, asProxyError(thrown), took());
    throw thrown;
  }
}

/** The provider's own words, where they are JSON; the exchange has failed either way. */
async function answerRefusal(provider: Provider, response: CallResponse, exchange: RequestRecord): Promise<Response> {
  const { error, text } = await readRefusal(provider, response);
  if (text === undefined) throw error;
  exchange.fail(error);
  return withHeaders(
    new Response(text, { status: response.status, headers: { "content-type": "application/json" } }),
    response,
  );
}

/**
 * What an error answer of a provider's means. A client would take a 401 or 403 for an answer to its own key: it is told
 * whose it was.
 * @returns With `text` where the client may be given the answer as it is.
 */
export async function readRefusal(
  provider: Provider,
  response: CallResponse,
): Promise<{ error: ProxyError; text?: string }> {
  const { status } = response;
  const text = provider.withoutKey(await readStart(response, refusalLimit));
  const { told, isWhole } = readWords(text);
  const headers = Object.fromEntries(passedDown(response.headers));
  if (status === 401 || status === 403) {
    const said = told === undefined ? "" : `, and says: ${told}`;
    const message = `${provider.who} refused the configured credential (status ${status})${said}`;
    return { error: new ProxyError("upstream", sentence(message), { code: "provider_refused", headers: stop }) };
  }
  const message = told ?? `${provider.who} answered with status ${status}.`;
  const error = new ProxyError(kindOf(status), message, { status, headers });
  return isWhole ? { error, text } : { error };
}

/** Bytes. */
const refusalLimit = 64 * 1024;

/** Trying again cannot help before the owner has mended the config. */
const stop = { "x-should-retry": "false" };

function readWords(text: string): { told?: string; isWhole: boolean } {
  const json = parseJson(text);
  const error = isObject(json) && isObject(json.error) ? json.error : json;
  const told = isObject(error) && typeof error.message === "string" ? error.message.trim().slice(0, 1000) : "";
  return { told: told || undefined, isWhole: isObject(json) };
}

const sentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);

function withHeaders(answer: Response, from: Pick<CallResponse, "headers">): Response {
  for (const [name, value] of passedDown(from.headers)) answer.headers.set(name, value);
  return answer;
}
