/** Reports one request to its trace, if somebody asked for traces. */
import type { Entry } from "../history/entry";
import type { AttemptResult, ExchangeTrace, Tracing } from "../observe/tracing";
import type { AttemptedAccount, RequestState } from "./request-log";

export class RequestTrace {
  readonly #state: RequestState;
  readonly exchange: ExchangeTrace | undefined;
  /** An attempt was begun, and its headers have not come. */
  #isTrying = false;

  /** @param parent The trace of the request for which this one runs. */
  constructor({ begin }: Tracing, state: RequestState, headers: Headers, parent?: RequestTrace) {
    this.#state = state;
    const { method, path, clientDialect: dialect, requestId } = state;
    this.exchange = begin?.({ headers, method, path, dialect, requestId, parent: parent?.exchange });
  }

  /** An attempt is about to be sent. @param baseUrl Where to; null if nothing can be sent. */
  begin(account: AttemptedAccount | null, baseUrl: string | null): void {
    if (!this.exchange) return;
    const { target, asked } = this.#state;
    this.#isTrying = true;
    this.exchange.beginAttempt({
      account: account?.key ?? null,
      endpoint: target?.endpoint ?? null,
      model: target?.model.id ?? null,
      stream: asked?.stream ?? false,
      baseUrl,
    });
  }

  /** The headers of an attempt's answer are there, or there is none. */
  ended(account: AttemptedAccount | null, result: AttemptResult): void {
    if (!this.exchange) return;
    if (!this.#isTrying) this.begin(account, null);
    this.#isTrying = false;
    this.exchange.endAttempt(result);
  }

  /** The answer of the last attempt turned out to be an error. */
  failed(error: string): void {
    this.exchange?.failAttempt(error);
  }

  /** Headers that connect the present attempt with the upstream's own trace. */
  get headers(): Record<string, string> {
    return this.exchange?.headers ?? {};
  }

  end(row: Entry): void {
    this.exchange?.end(row);
  }
}
