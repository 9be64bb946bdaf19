/** A request to a provider. It has no other account to try; a refused body may be sent once more without what was refused. */

import type { ReplyFailure } from "../../dialects/hub/reply";
import type { ProxyError } from "../../lib/errors";
import type { CallResponse } from "../../lib/net/out/body";
import { type Failure, readBrokenReply, readFailure } from "../upstream/copilot/failure";
import type { Provider } from "../upstream/providers/provider";
import { errorOfBroken, readProviderError } from "../upstream/providers/provider-error";
import type { Step } from "./after";
import { bodyRemedies, mendKnownRefusals } from "./body-remedies";
import { reserve } from "./budget-lines";
import { Seats, type Tried } from "./seats";

export class ProviderSeats<Answer> extends Seats<Answer> {
  readonly #provider: Provider = this.dispatch.target.provider!;
  readonly asked = this.#provider.name;
  readonly sent = { ...this.dispatch.outgoing };
  #error: ProxyError | undefined;

  async attempt(step: Step): Promise<Tried<Answer>> {
    if (step !== "again") {
      await reserve(this.parts, this.running, null);
      if (!this.sent.isVerbatim) await mendKnownRefusals(this.parts, this);
    }
    const result = await this.ask();
    if ("answer" in result) return result;
    const remedy = this.sent.isVerbatim ? undefined : this.mending.remedyFor(result, bodyRemedies);
    if (await remedy?.apply(this, result)) return { trouble: "mended" };
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
    this.#beginAttempt();
    return this.#provider.call({
      ...sent,
      operation: target.dialect ? "generate" : "embed",
      request,
      controller: running.controller,
      headers: { ...sent.headers, ...book.trace?.headers },
      listener: this,
    });
  }

  #beginAttempt(): void {
    this.book.beginAttempt(null, this.#provider.settings.baseUrl);
  }

  retried(code: string): void {
    this.parts.logger.debug(`The connection to ${this.#provider.name} failed (${code}); connecting again.`);
  }

  resent(error: ProxyError): void {
    this.book.endAttempt(error);
    this.#beginAttempt();
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
