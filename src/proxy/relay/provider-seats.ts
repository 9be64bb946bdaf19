/** A request to a provider. It has no other account to try; a refused body may be sent once more without what was refused. */

import type { ReplyFailure } from "../../dialects/hub/reply";
import { ProxyError } from "../../lib/errors";
import { withFullStop } from "../../lib/format";
import { isObject, parseJson } from "../../lib/json";
import { type CallResponse, readStart } from "../../lib/net/out/body";
import { type Failure, kindOf, readBrokenReply, readFailure, writtenOfReply } from "../upstream/copilot/failure";
import { statusOf } from "../upstream/copilot/failure-match";
import { type Provider, passedDown } from "../upstream/providers/provider";
import { readErrorBody, writtenOf } from "../upstream/upstream-error";
import type { Step } from "./after";
import { bodyRemedies, mendKnownRefusals, remediesOf } from "./body-remedies";
import { reserve } from "./budget-lines";
import { Seats, type Tried } from "./seats";

export class ProviderSeats<Answer> extends Seats<Answer> {
  readonly #provider: Provider = this.dispatch.target.provider!;
  readonly asked = this.#provider.name;
  readonly sent = { ...this.dispatch.outgoing };
  readonly #remedyFor = remediesOf(this.sent.isVerbatim ? [] : bodyRemedies);
  #error: ProxyError | undefined;

  async attempt(step: Step): Promise<Tried<Answer>> {
    if (step !== "again") {
      await reserve(this.parts, this.running, null);
      if (!this.sent.isVerbatim) await mendKnownRefusals(this.parts, this);
    }
    const result = await this.ask();
    if ("answer" in result) return result;
    if (await this.#remedyFor(result)?.apply(this, result)) return { trouble: "mended" };
    this.#error = result.error;
    return { trouble: "refused" };
  }

  isLeft(step: Step): boolean {
    return step === "again";
  }

  get error(): ProxyError {
    return this.#error!;
  }

  protected call(): Promise<CallResponse> {
    const { book, running, sent } = this;
    const { request, target } = this.dispatch;
    const { name, settings } = this.#provider;
    const begin = () => book.beginAttempt(null, settings.baseUrl);
    begin();
    return this.#provider.call({
      ...sent,
      operation: target.dialect ? "generate" : "embed",
      request,
      controller: running.controller,
      headers: { ...sent.headers, ...book.trace?.headers },
      retried: (code) => this.parts.logger.debug(`The connection to ${name} failed (${code}); connecting again.`),
      resent(error) {
        book.endAttempt(error);
        begin();
      },
    });
  }

  protected failed(how: ProxyError | number): void {
    if (typeof how !== "number" && how.kind !== "timeout" && how.kind !== "upstream") return;
    const { breaker, who } = this.#provider;
    const ofCall =
      typeof how === "number" ? `status ${how}` : how.kind === "timeout" ? "no answer in time" : "no connection";
    const until = breaker.failed(ofCall);
    if (until !== undefined)
      this.parts.logger.warn(
        `${who} is cooling down until ${new Date(until).toISOString()}: its last requests all failed (${ofCall}). Until then its models are asked only where no fallback can serve.`,
      );
  }

  protected async refused(response: CallResponse): Promise<Failure> {
    const { error, text } = await readProviderError(this.#provider, response, this.sent.isVerbatim);
    return { ...readFailure(response.status, response.headers, text, this.parts.now()), error };
  }

  protected accepted(): void {
    this.#provider.breaker.served();
  }

  protected broken(error: ReplyFailure, headers: Headers): Failure {
    return { ...readBrokenReply(error, headers, this.parts.now()), error: errorOfBroken(this.#provider, error) };
  }
}

/** The error that a provider sent in place of a reply, with the status that its code stands for. */
function errorOfBroken({ who, withoutKey }: Provider, error: ReplyFailure): ProxyError {
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
