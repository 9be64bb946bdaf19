/**
 * What can go wrong, as a closed list: each kind has its status, and its name in each family's words.
 * Thrown where it is known, spoken where it leaves (`encodeError` of a dialect).
 */
export const kinds = {
  invalid_request: { status: 400, openai: "invalid_request_error", anthropic: "invalid_request_error" },
  authentication: { status: 401, openai: "authentication_error", anthropic: "authentication_error" },
  permission: { status: 403, openai: "permission_error", anthropic: "permission_error" },
  not_found: { status: 404, openai: "invalid_request_error", anthropic: "not_found_error" },
  method_not_allowed: { status: 405, openai: "invalid_request_error", anthropic: "invalid_request_error" },
  /** Something else has changed meanwhile. */
  conflict: { status: 409, openai: "invalid_request_error", anthropic: "invalid_request_error" },
  too_large: { status: 413, openai: "invalid_request_error", anthropic: "request_too_large" },
  unsupported_media: { status: 415, openai: "invalid_request_error", anthropic: "invalid_request_error" },
  /** Another protocol was asked for than the one that is served. */
  upgrade_required: { status: 426, openai: "invalid_request_error", anthropic: "invalid_request_error" },
  rate_limit: { status: 429, openai: "rate_limit_error", anthropic: "rate_limit_error" },
  quota: { status: 429, openai: "insufficient_quota", anthropic: "rate_limit_error" },
  internal: { status: 500, openai: "server_error", anthropic: "api_error" },
  upstream: { status: 502, openai: "upstream_error", anthropic: "api_error" },
  no_account: { status: 503, openai: "server_error", anthropic: "api_error" },
  timeout: { status: 504, openai: "timeout_error", anthropic: "timeout_error" },
  /** We were called by ourselves. */
  loop: { status: 508, openai: "server_error", anthropic: "api_error" },
} as const;

export type Kind = keyof typeof kinds;

export interface ErrorDetails {
  /** For the logger only; it never reaches a client. */
  cause?: unknown;
  /** A stable word a program can act on, for example `model_not_found`. */
  code?: string;
  /** The request field that is at fault. */
  param?: string;
  /** Overrides the kind's status: an upstream's own error keeps the upstream's. */
  status?: number;
  /** Headers the answer must carry, for example `retry-after`. */
  headers?: Record<string, string>;
}

/** A failure with a sentence for a person: what happened, why, and what to do. */
export class ProxyError extends Error {
  override readonly name = "ProxyError";

  constructor(
    readonly kind: Kind,
    message: string,
    readonly details: ErrorDetails = {},
  ) {
    super(message, { cause: details.cause });
  }

  get status(): number {
    return this.details.status ?? kinds[this.kind].status;
  }
}

/** Any thrown value as a ProxyError; what nobody foresaw becomes a plain `internal`, its cause kept for the logger. */
export function asProxyError(thrown: unknown): ProxyError {
  if (thrown instanceof ProxyError) return thrown;
  return new ProxyError("internal", "Something went wrong inside dragoman; its log on stderr says what.", {
    cause: thrown,
  });
}

/** A system or network failure's short name: `ENOENT`, `ECONNREFUSED`; empty when it has none. */
export function codeOf(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : "";
}

/**
 * When to come again. Official SDKs sleep through a `retry-after` of any length: beyond half a minute they are told not
 * to try by themselves.
 */
export const retryHeaders = (seconds: number): Record<string, string> => ({
  "retry-after": String(seconds),
  ...(seconds > 30 ? { "x-should-retry": "false" } : {}),
});
