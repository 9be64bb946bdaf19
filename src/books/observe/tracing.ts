/**
 * What an exchange reports to its trace. Nothing here knows OpenTelemetry: without `begin`, as long as nobody asks for traces,
 * an exchange pays for one look at it.
 */
import type { Entry } from "../history/entry";

/** An exchange that has begun. */
export interface BegunExchange {
  /** The client's. */
  headers: Headers;
  method: string;
  /** Without the query string. */
  path: string;
  dialect: Entry["client_dialect"];
  requestId: string;
  /** Of the exchange for which this one runs. */
  parent?: ExchangeTrace;
}

/** One try to reach an upstream, which is about to be sent. */
export interface BegunAttempt {
  /** The account's key; null for a provider. */
  account: string | null;
  /** As in the history. */
  endpoint: string | null;
  model: string | null;
  stream: boolean;
  /** Where it is sent to; null if nothing could be sent, because the account got no Copilot token. */
  baseUrl: string | null;
}

export interface AttemptResult {
  status?: number;
  error?: string;
}

export interface ExchangeTrace {
  /** An attempt that answered well goes on until the exchange ends, the next attempt begins, or `failAttempt`. */
  beginAttempt(attempt: BegunAttempt): void;
  /** The headers of the present attempt's answer are there, or there is none. */
  endAttempt(result: AttemptResult): void;
  /** The answer of the present attempt turned out to be an error. */
  failAttempt(error: string): void;
  /** Headers that connect the present attempt with the upstream's own trace. */
  readonly headers: Record<string, string>;
  /** The last byte was sent. */
  end(row: Entry): void;
}

export interface Tracing {
  begin?: (exchange: BegunExchange) => ExchangeTrace;
}
