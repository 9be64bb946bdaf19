/** What an error answer of a provider becomes for the client. */

import type { ReplyFailure } from "../../../dialects/hub/reply";
import { ProxyError } from "../../../lib/errors";
import { withFullStop } from "../../../lib/format";
import { isObject, parseJson } from "../../../lib/json";
import { type CallResponse, readStart } from "../../../lib/net/out/body";
import { kindOf, writtenOfReply } from "../copilot/failure";
import { statusOf } from "../copilot/failure-match";
import { readErrorBody, writtenOf } from "../upstream-error";
import { type Provider, passedDown } from "./provider";

/** The error that a provider sent in place of a reply, with the status that its code stands for. */
export function errorOfBroken({ who, withoutKey }: Provider, error: ReplyFailure): ProxyError {
  const code = withoutKey(error.code);
  const status = statusOf(code);
  const words = { told: withoutKey(error.message), written: writtenOfReply(error, who) };
  // A client would take a 401 or 403 for an answer to its own key.
  if (status === 401 || status === 403) return new ProxyError("upstream", words, { code });
  return new ProxyError(kindOf(status), words, { code, status });
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
