/** One SERVER span for each exchange, and one CLIENT span for each attempt. They end when the last byte was sent. Never content. */
import {
  type Attributes,
  type Context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { clientPaths, embeddingsPaths, geminiPath } from "../../lib/api-paths";
import { BoundedMap } from "../../lib/bounded-map";
import { endedHere } from "../../lib/errors";
import type { Entry } from "../history/entry";
import { upstreamOf } from "./exchange-metrics";
import { attributes as at, operationName, ownAttributes as own, providerName } from "./names";
import type { AttemptResult, BegunAttempt, BegunExchange, ExchangeTrace } from "./tracing";

export const exchangeTracer =
  (tracer: Tracer) =>
  (exchange: BegunExchange): ExchangeTrace => {
    if (exchange.parent instanceof TracedExchange)
      return new TracedExchange(tracer, exchange.parent.context, exchange, SpanKind.INTERNAL);
    return new TracedExchange(tracer, clientContext(exchange.headers), exchange, SpanKind.SERVER);
  };

/** `traceparent`: https://www.w3.org/TR/trace-context/#traceparent-header. A later version may have more at its end. */
const parentForm = /^(?!ff)([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** The client's trace goes on here, if it sends one. */
function clientContext(headers: Headers): Context {
  const [, version, traceId, spanId, flags, more] = parentForm.exec(headers.get("traceparent") ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || (version === "00" && more)) return ROOT_CONTEXT;
  const state = headers.get("tracestate");
  const span: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags!, 16), isRemote: true };
  if (state !== null) span.traceState = createTraceState(state);
  return isSpanContextValid(span) ? trace.setSpanContext(ROOT_CONTEXT, span) : ROOT_CONTEXT;
}

class TracedExchange implements ExchangeTrace {
  readonly #tracer: Tracer;
  readonly #dialect: string;
  readonly #span: Span;
  /** In which what runs for this exchange has its spans. */
  readonly context: Context;
  #attempt: Span | undefined;
  #attempts = 0;

  constructor(tracer: Tracer, parent: Context, exchange: BegunExchange, kind: SpanKind) {
    const { method, path, dialect, requestId } = exchange;
    const route = routeOf(path, dialect);
    const http = { [at.method]: method, [at.route]: route, [at.path]: path };
    const isServer = kind === SpanKind.SERVER;
    const attributes = { ...(isServer ? http : {}), [own.requestId]: requestId, [own.dialect]: dialect };
    this.#tracer = tracer;
    this.#dialect = dialect;
    this.#span = tracer.startSpan(isServer ? `${method} ${route}` : path, { kind, attributes }, parent);
    this.context = trace.setSpan(parent, this.#span);
  }

  beginAttempt({ account, endpoint, model, stream, baseUrl }: BegunAttempt): void {
    this.#attempt?.end();
    const operation = operationName(this.#dialect);
    this.#attempt = this.#tracer.startSpan(
      model === null ? operation : `${operation} ${model}`,
      {
        kind: SpanKind.CLIENT,
        attributes: withoutNulls({
          [at.operation]: operation,
          [at.provider]: providerName(upstreamOf(endpoint)),
          [at.requestModel]: model,
          [at.requestStream]: stream ? true : null,
          ...(baseUrl === null ? {} : serverOf(baseUrl)),
          [at.resendCount]: this.#attempts === 0 ? null : this.#attempts,
          [own.account]: account,
        }),
      },
      this.context,
    );
    this.#attempts++;
  }

  endAttempt({ status, error }: AttemptResult): void {
    if (status !== undefined) this.#attempt?.setAttribute(at.status, status);
    const failure = error ?? (status !== undefined && status >= 400 ? String(status) : undefined);
    if (failure !== undefined) this.failAttempt(failure);
  }

  failAttempt(error: string): void {
    if (this.#attempt) fail(this.#attempt, error);
    this.#attempt?.end();
    this.#attempt = undefined;
  }

  get headers(): Record<string, string> {
    if (!this.#attempt) return {};
    const { traceId, spanId, traceFlags, traceState } = this.#attempt.spanContext();
    const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
    return traceState ? { traceparent, tracestate: traceState.serialize() } : { traceparent };
  }

  end(row: Entry): void {
    const { http_status: status, error_type: error } = row;
    if (this.#attempt?.isRecording()) {
      this.#attempt.setAttributes(resultOf(row));
      if (error !== null) fail(this.#attempt, error);
    }
    this.#attempt?.end();
    this.#attempt = undefined;
    if (this.#span.isRecording()) {
      this.#span.setAttributes(exchangeAttributes(row));
      // A client's mistake is no error of a server; an answer that broke off is one.
      if (error !== null && (status >= 500 || status < 400)) fail(this.#span, error);
      else if (error !== null) this.#span.setAttribute(at.errorType, error);
    }
    this.#span.end();
  }
}

/** Without the message: it may repeat what an upstream says of the request. What was ended on this side is no error. */
function fail(span: Span, error: string): void {
  span.setAttribute(at.errorType, error);
  if (!endedHere.has(error)) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Attributes of the addresses called so far. */
const servers = new BoundedMap<string, Attributes>(100);

function serverOf(baseUrl: string): Attributes {
  let server = servers.get(baseUrl);
  if (!server) {
    const { hostname, port, protocol } = new URL(baseUrl);
    server = { [at.serverAddress]: hostname, [at.serverPort]: Number(port || (protocol === "http:" ? 80 : 443)) };
    servers.set(baseUrl, server);
  }
  return server;
}

/** What the upstream reported, for the attempt that served. */
const resultOf = (row: Entry): Attributes =>
  withoutNulls({
    [at.inputTokens]: row.tokens_estimated ? null : row.input_tokens,
    [at.outputTokens]: row.tokens_estimated ? null : row.output_tokens,
    [at.cachedTokens]: row.cached_tokens,
    [at.cacheWriteTokens]: row.cache_write_tokens,
    [at.reasoningTokens]: row.reasoning_tokens,
    [at.finishReasons]: row.stop_reason === null ? null : [row.stop_reason],
    [at.firstChunkSeconds]: row.stream && row.first_byte_ms !== null ? row.first_byte_ms / 1000 : null,
    [at.conversation]: row.session,
    [own.upstreamDialect]: row.upstream_dialect,
    [own.cost]: row.cost === null ? null : row.cost / 1e9,
    [own.costUnit]: row.cost_unit,
  });

function exchangeAttributes(row: Entry): Attributes {
  const list = (json: string): string[] | null => (json === "[]" ? null : JSON.parse(json));
  return withoutNulls({
    [at.status]: row.http_status,
    [own.client]: row.client_name,
    [own.key]: row.key_name,
    [own.initiator]: row.initiator,
    [own.account]: row.account_key,
    [own.fixups]: list(row.fixups),
    [own.dropped]: list(row.dropped),
  });
}

/** Without the names that clients choose: of few values. */
function routeOf(path: string, dialect: BegunExchange["dialect"]): string {
  const isProvider = dialect === "messages" && !/^(?:ws:)?\/(?:v1\/)+messages/.test(path);
  return isProvider ? `/{provider}${clientPaths.messages}` : (routes[dialect] ?? path);
}

const routes: Readonly<Record<string, string>> = {
  ...clientPaths,
  embeddings: embeddingsPaths.client,
  gemini: `${geminiPath}/{model}`,
};

function withoutNulls(values: Record<string, Attributes[string] | null>): Attributes {
  const kept: Attributes = {};
  for (const name in values) if (values[name] !== null) kept[name] = values[name];
  return kept;
}
