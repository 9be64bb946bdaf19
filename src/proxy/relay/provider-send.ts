/** Sends a request to a provider. It has no other account to try; a refused body may be sent once more without what was refused. */

import { asProxyError, ProxyError } from "../../lib/errors";
import { withFullStop } from "../../lib/format";
import { isObject, parseJson } from "../../lib/json";
import { type CallResponse, readStart } from "../../lib/net/out/body";
import type { RequestScope } from "../scope";
import { type Failure, kindOf, readBrokenReply, readFailure, writtenOfReply } from "../upstream/copilot/failure";
import { statusOf } from "../upstream/copilot/failure-match";
import { type Provider, type ProviderCall, passedDown } from "../upstream/providers/provider";
import { readErrorBody, writtenOf } from "../upstream/upstream-error";
import { bodyRemedies, learnFrom, mendKnownRefusals, remediesOf, type SentRequest } from "./body-remedies";
import { reserve } from "./budget-lines";
import { afterBroken, BrokenReply } from "./respond";
import type { RunningRequest } from "./running-request";
import type { Target } from "./target";
import type { Dispatch } from "./upstream-call";

interface ProviderDispatch<Answer> extends Dispatch<Answer> {
  target: Target & { provider: Provider };
}

/**
 * The result of the provider's answer.
 * @throws ProxyError The provider's own error, or why it could not be asked.
 */
export async function sendToProvider<Answer>(parts: RequestScope, dispatch: ProviderDispatch<Answer>): Promise<Answer> {
  const { target, outgoing, request, running } = dispatch;
  const { provider, model } = target;
  const { book } = running;
  const current: SentRequest = {
    ...{ sent: { ...outgoing }, book, model: model.id, asked: provider.name },
    ...{ removed: [], taught: [], schemaMends: 0 },
  };
  const remedyFor = remediesOf(outgoing.isVerbatim ? [] : bodyRemedies);
  await reserve(parts, running, null);
  if (!outgoing.isVerbatim) await mendKnownRefusals(parts, current);
  for (;;) {
    const response = await callProvider(parts, provider, running, {
      ...current.sent,
      operation: target.dialect ? "generate" : "embed",
      request,
      controller: running.controller,
    });
    const result = await resultOf(dispatch, response, parts.now());
    if ("answer" in result) {
      learnFrom(parts, current);
      return result.answer;
    }
    if (!(await remedyFor(result)?.apply(current, result))) throw result.error;
  }
}

/** The answer, or the failure as long as nothing of the answer went to the client. */
async function resultOf<Answer>(
  dispatch: ProviderDispatch<Answer>,
  response: CallResponse,
  now: number,
): Promise<{ answer: Answer } | Failure> {
  const { accept, running, target } = dispatch;
  const { provider } = target;
  const { status, headers, ok } = response;
  if (!ok) {
    const { error, text } = await readProviderError(provider, response, dispatch.outgoing.isVerbatim);
    return { ...readFailure(status, headers, text, now), error };
  }
  try {
    return { answer: await accept(response) };
  } catch (thrown) {
    if (!(thrown instanceof BrokenReply)) throw thrown;
    const failure = { ...readBrokenReply(thrown.error, headers, now), error: errorOfBroken(provider, thrown) };
    return afterBroken(thrown, failure, running.book);
  }
}

/** The error that a provider sent in place of a reply, with the status that its code stands for. */
function errorOfBroken({ who, withoutKey }: Provider, { error }: BrokenReply): ProxyError {
  const code = withoutKey(error.code);
  const status = statusOf(code);
  const words = { told: withoutKey(error.message), written: writtenOfReply(error, who) };
  // A client would take a 401 or 403 for an answer to its own key.
  if (status === 401 || status === 403) return new ProxyError("upstream", words, { code });
  return new ProxyError(kindOf(status), words, { code, status });
}

/** One call, with an attempt in the book. @throws ProxyError */
async function callProvider(
  { logger }: RequestScope,
  provider: Provider,
  running: RunningRequest,
  call: ProviderCall,
): Promise<CallResponse> {
  const { book } = running;
  const begin = () => book.beginAttempt(null, provider.settings.baseUrl);
  begin();
  try {
    const response = await provider.call({
      ...call,
      headers: { ...call.headers, ...book.trace?.headers },
      retried: (code) => logger.debug(`The connection to ${provider.name} failed (${code}); connecting again.`),
      resent(error) {
        book.endAttempt(error);
        begin();
      },
    });
    book.endAttempt(response.status);
    if (response.status >= 500) noteFailure(logger, provider, `status ${response.status}`);
    else if (response.ok) provider.breaker.served();
    return response;
  } catch (thrown) {
    const error = asProxyError(thrown);
    book.endAttempt(error);
    if (!running.isStopped && (error.kind === "upstream" || error.kind === "timeout"))
      noteFailure(logger, provider, error.kind === "timeout" ? "no answer in time" : "no connection");
    throw thrown;
  }
}

function noteFailure(logger: RequestScope["logger"], { breaker, who }: Provider, why: string): void {
  const until = breaker.failed(why);
  if (until !== undefined)
    logger.warn(
      `${who} is cooling down until ${new Date(until).toISOString()}: its last requests all failed (${why}). Until then its models are asked only where no fallback can serve.`,
    );
}

/**
 * Reads a provider's error answer. A client would take a 401 or 403 for an answer to its own key, so the error says which
 * key was refused.
 * @param passesJson The client gets an answer of JSON as it is.
 * @returns `text` is the answer without the key.
 */
export async function readProviderError(
  provider: Provider,
  response: CallResponse,
  passesJson = false,
): Promise<{ error: ProxyError; text: string }> {
  const { status } = response;
  const text = provider.withoutKey(await readStart(response, maxErrorBytes));
  const error = readErrorBody(text);
  const { code, message, param } = error;
  const { who } = provider;
  if (status === 401 || status === 403) {
    const refused = `${who} refused the configured credential (status ${status})`;
    const told = message === "" ? `${refused}.` : withFullStop(`${refused}, and says: ${message}`);
    const details = { code: "provider_refused", headers: doNotRetry };
    return { error: new ProxyError("upstream", { told, written: `${refused}.` }, details), text };
  }
  const written = writtenOf(error, { who, status });
  const headers = Object.fromEntries(passedDown(provider, response.headers));
  const body = passesJson && isObject(parseJson(text)) ? text : undefined;
  const details = { status, code: code || undefined, param, headers, body };
  return { error: new ProxyError(kindOf(status), { told: message || written, written }, details), text };
}

const maxErrorBytes = 64 * 1024;

/** A retry cannot help before the owner has corrected the config. */
const doNotRetry = { "x-should-retry": "false" };

/** The answer with the provider's rate limits and request id. */
export function withHeaders(answer: Response, provider: Provider, from: Pick<CallResponse, "headers">): Response {
  for (const [name, value] of passedDown(provider, from.headers)) answer.headers.set(name, value);
  return answer;
}
