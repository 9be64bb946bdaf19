/**
 * Names of OpenTelemetry's conventions for models, as of November 2026, in one place: they are in development and change.
 * https://github.com/open-telemetry/semantic-conventions-genai/tree/main/docs/gen-ai
 */

export const attributes = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  requestModel: "gen_ai.request.model",
  requestStream: "gen_ai.request.stream",
  conversation: "gen_ai.conversation.id",
  finishReasons: "gen_ai.response.finish_reasons",
  firstChunkSeconds: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cachedTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_write.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  errorType: "error.type",
  serverAddress: "server.address",
  serverPort: "server.port",
  method: "http.request.method",
  route: "http.route",
  path: "url.path",
  status: "http.response.status_code",
  resendCount: "http.request.resend_count",
} as const;

/** What is dragoman's own. */
export const ownAttributes = {
  requestId: "dragoman.request_id",
  dialect: "dragoman.dialect",
  upstreamDialect: "dragoman.upstream_dialect",
  account: "dragoman.account",
  client: "dragoman.client",
  key: "dragoman.key",
  initiator: "dragoman.initiator",
  cost: "dragoman.cost",
  costUnit: "dragoman.cost_unit",
  fixups: "dragoman.fixups",
  dropped: "dragoman.dropped",
} as const;

/** The conventions list no name for Copilot, and allow others. */
const copilot = "github.copilot";

/** @param upstream `copilot`, or the name of a provider. */
export const providerName = (upstream: string): string => (upstream === "copilot" ? copilot : upstream);

/** @param dialect The client's. */
export const operationName = (dialect: string): string =>
  dialect === "embeddings" ? "embeddings" : dialect === "gemini" ? "generate_content" : "chat";
