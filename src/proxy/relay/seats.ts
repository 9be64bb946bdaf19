/** Who may serve one request, in the order of trying: accounts of GitHub Copilot, or one provider. */

import type { ReplyFailure } from "../../dialects/hub/reply";
import { asProxyError, type ProxyError } from "../../lib/errors";
import type { CallResponse } from "../../lib/net/out/body";
import type { CallListener } from "../../lib/net/out/fetch";
import type { RequestScope } from "../scope";
import type { Failure } from "../upstream/copilot/failure";
import type { Step, Trouble } from "./after";
import { learnFrom, Mending, type SentRequest } from "./body-remedies";
import type { Book } from "./book";
import { BrokenReply } from "./respond";
import type { RunningRequest } from "./running-request";
import type { Dispatch, Outgoing } from "./upstream-call";

/** The answer; or why the try did not serve. */
export type Tried<Answer> = { answer: Answer } | { trouble: Trouble };

export abstract class Seats<Answer> implements SentRequest, CallListener {
  readonly running: RunningRequest;
  readonly book: Book;
  readonly model: string;
  abstract sent: Outgoing;
  abstract readonly asked: string;
  #mending: Mending | undefined;
  /** What was noted of the request as every account would get it. */
  readonly #plain: Book["mark"];

  constructor(
    protected readonly parts: RequestScope,
    protected readonly dispatch: Dispatch<Answer>,
  ) {
    const { running, target } = dispatch;
    this.running = running;
    this.book = running.book;
    this.#plain = this.book.mark;
    this.model = target.model.id;
  }

  get mending(): Mending {
    this.#mending ??= new Mending();
    return this.#mending;
  }

  /** Another one is asked, with the request as it was. */
  protected startOver(): void {
    this.#mending = undefined;
    this.book.takeBack(this.#plain);
  }

  abstract retried(why: string): void;
  abstract resent(error: ProxyError): void;

  /** Tries the one that is next after this step. @throws ProxyError after which nobody else may be tried. */
  abstract attempt(step: Step): Promise<Tried<Answer>>;
  /** Whether it could follow a try that did not serve. */
  abstract isLeft(step: Step): boolean;
  /** Why nobody has served. */
  abstract readonly error: ProxyError;

  /** One call, whose beginning the book has. @throws ProxyError if there is no answer. */
  protected abstract call(): Promise<CallResponse>;
  /** There is no answer, or the upstream itself has failed, with this status. */
  protected abstract failed(how: ProxyError | number): void;
  /** The answer is an error. */
  protected abstract refused(response: CallResponse): Promise<Failure>;
  /** The answer is no error, as far as its status tells. */
  protected abstract accepted(response: CallResponse): void;
  /** An error came in place of a reply. */
  protected abstract broken(error: ReplyFailure, headers: Headers): Failure;

  /**
   * One call, and what came of it; a failure only as long as nothing of the answer went to the client.
   * @throws ProxyError if the request may have been processed.
   */
  protected async ask(): Promise<{ answer: Answer } | Failure> {
    const { book, running } = this;
    let response: CallResponse;
    try {
      response = await this.call();
    } catch (thrown) {
      const error = asProxyError(thrown);
      book.endAttempt(error);
      if (!running.isStopped) this.failed(error);
      throw thrown;
    }
    const { status, headers, ok } = response;
    book.endAttempt(status);
    if (status >= 500) this.failed(status);
    if (!ok) return this.refused(response);
    this.accepted(response);
    try {
      const answer = await this.dispatch.accept(response);
      if (this.#mending) learnFrom(this.parts, this.#mending, this.model);
      return { answer };
    } catch (thrown) {
      if (!(thrown instanceof BrokenReply)) throw thrown;
      const failure = this.broken(thrown.error, headers);
      // A reply that had begun was generated and billed.
      if (thrown.hasBegun) throw failure.error;
      book.replyFailed(thrown.error.code);
      return failure;
    }
  }
}
