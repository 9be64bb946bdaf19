/**
 * When a client may retry a failed request unchanged: `soon`; `later`, after more than {@link longWait} seconds; `never`,
 * before a person has acted.
 */
type Again = "soon" | "later" | "never";

/**
 * Every kind of error: its status, its type in OpenAI's and Anthropic's APIs, and whether the same request may succeed
 * later ({@link againOf}). Each dialect's `encodeError` writes it for the client.
 */
export const kinds = {
  invalid_request: { status: 400, openai: "invalid_request_error", anthropic: "invalid_request_error", again: "never" },
  authentication: { status: 401, openai: "authentication_error", anthropic: "authentication_error", again: "never" },
  permission: { status: 403, openai: "permission_error", anthropic: "permission_error", again: "never" },
  not_found: { status: 404, openai: "invalid_request_error", anthropic: "not_found_error", again: "never" },
  method_not_allowed: {
    status: 405,
    openai: "invalid_request_error",
    anthropic: "invalid_request_error",
    again: "never",
  },
  /** The state has changed since the caller read it. */
  conflict: { status: 409, openai: "invalid_request_error", anthropic: "invalid_request_error", again: "never" },
  too_large: { status: 413, openai: "invalid_request_error", anthropic: "request_too_large", again: "never" },
  unsupported_media: {
    status: 415,
    openai: "invalid_request_error",
    anthropic: "invalid_request_error",
    again: "never",
  },
  /** The client requested another protocol, such as a WebSocket. */
  upgrade_required: {
    status: 426,
    openai: "invalid_request_error",
    anthropic: "invalid_request_error",
    again: "never",
  },
  rate_limit: { status: 429, openai: "rate_limit_error", anthropic: "rate_limit_error", again: "soon" },
  quota: { status: 429, openai: "insufficient_quota", anthropic: "rate_limit_error", again: "later" },
  internal: { status: 500, openai: "server_error", anthropic: "api_error", again: "soon" },
  upstream: { status: 502, openai: "upstream_error", anthropic: "api_error", again: "soon" },
  no_account: { status: 503, openai: "upstream_error", anthropic: "api_error", again: "never" },
  timeout: { status: 504, openai: "timeout_error", anthropic: "timeout_error", again: "soon" },
  /** The request came from this proxy itself. */
  loop: { status: 508, openai: "server_error", anthropic: "api_error", again: "never" },
  /** Instead of a status that clients retry without showing the error: they show this one at once. */
  unable: { status: 424, openai: "upstream_error", anthropic: "api_error", again: "never" },
} as const satisfies Record<string, { status: number; openai: string; anthropic: string; again: Again }>;

export type ErrorKind = keyof typeof kinds;

interface ErrorDetails {
  /** For the logger only; it never reaches a client. */
  cause?: unknown;
  /**
   * What history, log and the states of accounts keep in place of the message. Every error has it whose message repeats
   * words of an upstream that was sent a prompt, or words of the client.
   */
  kept?: string;
  /** A stable code for programs, for example `model_not_found`. */
  code?: string;
  /** The request field that is at fault. */
  param?: string;
  /** Overrides the kind's status: an upstream's own error keeps the upstream's. */
  status?: number;
  /** Headers the answer must carry, for example `retry-after`. */
  headers?: Record<string, string>;
  /** What the client gets in place of an error of ours: a provider's own JSON. */
  body?: string;
  /** Of a budget: the owner wants another model to serve. */
  mayFallBack?: boolean;
  /** Of a request that one account was to serve: another one may. */
  otherAccount?: boolean;
  /**
   * Of a limit that ends by itself: the milliseconds until it does, 0 when it is over; undefined when a person must act by now.
   * It is asked again while a request waits.
   */
  untilReady?(): number | undefined;
}

/** A failure with a sentence for a person: what happened, why, and what to do. */
export class ProxyError extends Error {
  override readonly name = "ProxyError";

  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly details: ErrorDetails = {},
  ) {
    super(message, { cause: details.cause });
  }

  /** The message as it may be written down: without words that may repeat a prompt. */
  get kept(): string {
    return this.details.kept ?? this.message;
  }

  get status(): number {
    return this.details.status ?? kinds[this.kind].status;
  }
}

/** Any thrown value as a ProxyError. An unexpected one becomes `internal`, with the value as its cause for the logger. */
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

/** Codes that differ from their kind. */
const againByCode: Record<string, Again> = {
  /** The owner must correct the provider's key. */
  provider_refused: "never",
  /** The upstream serves newer clients only. */
  api_version_retired: "never",
  /** A person must raise a budget at GitHub. */
  additional_spend_limit_reached: "never",
};

/** Statuses of an upstream that allow a retry, whatever the kind of the error. */
const retriable: ReadonlySet<number> = new Set([408, 409, 425]);

/** Whether a client may retry by itself; decided only here. */
export function againOf({ kind, details }: ProxyError): Again {
  const { code = "", status = 0, headers = {} } = details;
  const again = Object.hasOwn(againByCode, code) ? againByCode[code] : undefined;
  if (again) return again;
  if (headers["x-should-retry"] === "true") return "soon";
  const wait = Number(headers["retry-after"] ?? Number.NaN);
  if (wait >= 0) return isLong(wait) ? "later" : "soon";
  if (headers["x-should-retry"] === "false") return "never";
  return retriable.has(status) ? "soon" : kinds[kind].again;
}

/** Seconds. Official SDKs wait for any `retry-after`, so beyond this limit a header forbids them to retry. */
const longWait = 30;
const isLong = (seconds: number) => seconds > longWait;

/** Headers that state when to retry. */
export const retryHeaders = (seconds: number): Record<string, string> => ({
  "retry-after": String(seconds),
  ...(isLong(seconds) ? { "x-should-retry": "false" } : {}),
});
