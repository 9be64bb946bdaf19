import { beginningOf } from "./beginning";

/**
 * When a client may retry a failed request unchanged: `soon`; `later`, after more than {@link longWait} seconds; `never`,
 * before a person has acted.
 */
type Again = "soon" | "later" | "never";

/**
 * Every kind of error: its status, its type in OpenAI's and Anthropic's APIs, and whether the same request may succeed
 * later ({@link againOf}). Each dialect's `encodeError` writes it for the client.
 */
export const errorKinds = {
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

export type ErrorKind = keyof typeof errorKinds;

interface ErrorDetails {
  /** For the logger only; it never reaches a client. */
  cause?: unknown;
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

/**
 * A sentence as the client is told it, and as it may be written down: in history, log, states of accounts and on pages.
 * Those never hold a word that is the client's or an upstream's, because it may repeat a prompt or a name from it.
 */
export interface Words {
  readonly told: string;
  readonly written: string;
}

/** A word that is not ours: its first 200 characters for the client, and `…` in its place wherever it is written down. */
export const quoted = (word: string): Words => ({ told: beginningOf(word, 200), written: "…" });

/** Both forms of a sentence around quotations: ``words`There is no model ${quoted(name)}.` ``. Other values are our own. */
export function words(ours: TemplateStringsArray, ...parts: readonly (string | number | Words)[]): Words {
  const form = (name: keyof Words) => String.raw({ raw: ours }, ...parts.map((part) => wordsOf(part)[name]));
  return { told: form("told"), written: form("written") };
}

/** Both forms, changed in the same way. */
export const inBoth = ({ told, written }: Words, change: (form: string) => string): Words => ({
  told: change(told),
  written: change(written),
});

/** Several sentences as one. */
export const joined = (all: readonly Words[], between: string): Words => ({
  told: all.map(({ told }) => told).join(between),
  written: all.map(({ written }) => written).join(between),
});

const wordsOf = (part: string | number | Words): Words =>
  typeof part === "object" ? part : { told: String(part), written: String(part) };

/** A failure with a sentence for a person: what happened, why, and what to do. `message` is what the client is told. */
export class ProxyError extends Error {
  override readonly name = "ProxyError";
  readonly words: Words;

  /** @param sentence A text if all of it is dragoman's own. */
  constructor(
    readonly kind: ErrorKind,
    sentence: string | Words,
    readonly details: ErrorDetails = {},
  ) {
    const both = wordsOf(sentence);
    super(both.told, { cause: details.cause });
    this.words = both;
  }

  /** The message as it may be written down. */
  get written(): string {
    return this.words.written;
  }

  get status(): number {
    return this.details.status ?? errorKinds[this.kind].status;
  }
}

/** Any thrown value as a ProxyError. An unexpected one becomes `internal`, with the value as its cause for the logger. */
export function asProxyError(thrown: unknown): ProxyError {
  if (thrown instanceof ProxyError) return thrown;
  return new ProxyError("internal", "Something went wrong inside dragoman; its log on stderr says what.", {
    cause: thrown,
  });
}

/** The log's line for an `internal` error. */
export const faultLine = (method: string): string => `${method} failed unexpectedly; please report this.`;

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

/** The reason of a failure, to be put into a sentence. */
export function failureReason(thrown: unknown): string {
  const { cause } = thrown instanceof ProxyError ? thrown.details : {};
  const reason = cause instanceof Error ? cause : thrown;
  return (reason instanceof Error ? reason.message : String(reason)).replace(/\.$/, "");
}

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
  return retriable.has(status) ? "soon" : errorKinds[kind].again;
}

/** Seconds. Official SDKs wait for any `retry-after`, so beyond this limit a header forbids them to retry. */
const longWait = 30;
const isLong = (seconds: number) => seconds > longWait;

/** Headers that state when to retry. */
export const retryHeaders = (seconds: number): Record<string, string> => ({
  "retry-after": String(seconds),
  ...(isLong(seconds) ? { "x-should-retry": "false" } : {}),
});

/** Codes of what ended a request on this side: nobody who was asked has failed. */
export const endedHere: ReadonlySet<string> = new Set(["client_closed", "cancelled"]);

/** The kind of a failure; or, where somebody ended it on this side, how. */
export const kindOrEnd = ({ kind, details: { code } }: ProxyError): string =>
  code !== undefined && endedHere.has(code) ? code : kind;
