/** What each error answer of GitHub Copilot means, as a table: matched by its code, else by its message, else by its status. */
import { suspensionCodes, suspensionStatuses, suspensionWords } from "../../accounts/suspension";
import { personalTokenReason, personalTokenWords } from "../../accounts/token-exchange";
import { contextWords } from "../../dialects/hub/context-limit";
import type { ErrorKind } from "../../errors";

export interface FailureRow {
  status: number[];
  /** Matches the error's code. GitHub appends `:plan` to some, so only the beginning is compared. */
  code?: RegExp;
  /** Matches the field named by the error, in addition to `code`. */
  param?: RegExp;
  /**
   * Matches the message. Beside `code` both must match, and such a row goes before those that match the code alone: some
   * codes say less than their text. Without `code` it counts if no row of this status matches the code.
   */
  words?: RegExp;
  /** What to try; nothing when missing. `renew-session` sends the request again even if the session stays the same. */
  remedy?: "refresh-session" | "renew-session" | "relearn-host" | "next-account" | "repair" | "fit-tools";
  /** The new state of the account. */
  state?: "cooling" | "exhausted" | "failed";
  /** What the state applies to: this model only, or all premium models; the whole account when missing. */
  scope?: "model" | "premium";
  /** Upper limit for the wait that the answer asks for, in seconds; a day when missing. */
  maxWait?: number;
  /** The state ends when a person changes a setting at GitHub, which no answer tells in advance. */
  untilRaised?: boolean;
  /**
   * The account was refused the model, by a word that GitHub also has for a client that the account's organization does
   * not allow. `model`: the account does not have this model, whatever its list says.
   */
  denies?: "model" | "right";
  /** No account is used until a person has acted. */
  suspended?: boolean;
  kind?: ErrorKind;
  /** The status the client gets instead of the upstream's. */
  clientStatus?: number;
  /** The code the client gets instead of the upstream's. */
  clientCode?: string;
  /** The reason, appended to the upstream's message; `{until}` becomes ` until <time>` if that is known. */
  sentence?: string;
  /** What to do. */
  hint?: string;
}

export interface UpstreamError {
  code: string;
  message: string;
  param?: string;
  /** The body is a page for a browser, as something on the way to GitHub answers it. Its words are not read. */
  isPage?: boolean;
}

/** The row of an error: matched by its code and message, else by its code, else by its message, else by its status alone. */
export function rowOf(status: number, { code, message, param = "", isPage }: UpstreamError): FailureRow | undefined {
  const all = rows.filter((row) => row.status.includes(status));
  const words = isPage ? undefined : message;
  const hasWords = (row: FailureRow) => words !== undefined && row.words?.test(words) === true;
  const hasCode = (row: FailureRow) => row.code?.test(code) === true && (row.param?.test(param) ?? true);
  return (
    all.find((row) => hasCode(row) && hasWords(row)) ??
    all.find((row) => hasCode(row) && row.words === undefined) ??
    all.find((row) => row.code === undefined && hasWords(row)) ??
    all.find((row) => row.code === undefined && row.words === undefined)
  );
}

/** Seconds. */
export const daySeconds = 86_400;

/** Messages that a quota is used up. Some rate limits mention a quota too, only to suggest asking for more of it. */
const quotaWords =
  /\b(?:no|exceeded|exceeds|used up|out of|over)\b[^.]{0,40}\bquota\b|\bquota\b[^.]{0,40}\b(?:exceeded|exhausted|used up|reached|spent)\b/i;

const freeMayWork = "Models that cost no quota may still work.";

const usedUp = {
  state: "exhausted",
  remedy: "next-account",
  maxWait: 31 * daySeconds,
  kind: "quota",
  clientStatus: 429,
  clientCode: "quota_exceeded",
} as const satisfies Partial<FailureRow>;

const quotaIsUsedUp = {
  ...usedUp,
  sentence: "This account's quota is used up{until}.",
  hint: freeMayWork,
};

const slowDown = { state: "cooling", remedy: "next-account", kind: "rate_limit", clientStatus: 429 } as const;

/** A rate limit whose scope the upstream does not state. */
const limited = {
  ...slowDown,
  scope: "premium",
  sentence: "GitHub limits this account's requests{until}, and does not say which.",
  hint: "Other models may still work.",
} as const satisfies Partial<FailureRow>;

const replayed = { remedy: "repair", kind: "invalid_request", clientStatus: 400 } as const;
/** How OpenAI and Anthropic refuse the schema of a tool. */
const refusedSchema = { remedy: "fit-tools", kind: "invalid_request" } as const;
const tooLong = { kind: "invalid_request", clientStatus: 400, clientCode: "context_length_exceeded" } as const;
/** The account does not have the model, though its list names it. */
const lacksModel = {
  denies: "model",
  remedy: "next-account",
  kind: "not_found",
  clientStatus: 404,
} as const satisfies Partial<FailureRow>;
/** A person has to change something at GitHub before the account has the model. */
const unavailable = { ...lacksModel, clientCode: "model_not_available" } as const;
/** The message names the integration id, and every model that it may use (seen in opencode, 2026-06). */
const otherIntegrators = {
  ...unavailable,
  sentence: "GitHub offers this model to clients of another sign-in app or integration id only.",
  hint: "Use another model, or sign the account in with another app (`--oauth-app`).",
};
const noEndpoints = {
  ...unavailable,
  sentence: "The account's plan, or a policy of its organization, does not include this model.",
  hint: "Use another model, or ask the organization's admin for it: https://github.com/settings/copilot/features.",
};
const refusedToken = { state: "failed", remedy: "next-account", kind: "no_account", clientStatus: 503 } as const;
const enableFirst =
  "The model or feature may have to be enabled for the account first, by its owner or organization: https://github.com/settings/copilot/features.";
const noRight = { remedy: "renew-session", kind: "permission" } as const;
const suspended = {
  state: "failed",
  suspended: true,
  kind: "permission",
  clientStatus: 403,
  clientCode: "account_suspended",
  sentence: "Nothing was retried and no other account was tried: please read GitHub's message before you continue.",
} as const;

/** Codes of limits that hold for every account and model alike. */
export const ofEveryModel = /^(?:integration_rate_limited|extension_blocked)/;

export const rows: readonly FailureRow[] = [
  // Items made by another account. A 401 here does not mean that this account's token is bad.
  { status: [400, 401], words: /does not belong to this connection/i, ...replayed },
  { status: [400], code: /^invalid_encrypted_content/, ...replayed },
  { status: [400], code: /^string_above_max_length/, param: /^input\[\d+\]\.id$/, ...replayed },
  {
    status: [400],
    words:
      /item_id did not match|input\[\d+\]\.id'?: string too long|invalid `(?:signature|data)` in `(?:redacted_)?thinking`/i,
    ...replayed,
  },
  // The session token of Auto has ended, or belongs to another account. The status is not known (texts seen 2026-03).
  {
    status: [400, 401, 403],
    words: /copilot-session-token/i,
    kind: "upstream",
    clientStatus: 502,
    clientCode: "auto_token_refused",
  },
  { status: [400], code: /^invalid_function_parameters/, ...refusedSchema },
  {
    status: [400],
    words: /invalid schema for function|input_schema does not support|input_schema\.type: field required/i,
    ...refusedSchema,
  },
  { status: [400], code: /^(?:model_max_prompt_tokens_exceeded|context_length_exceeded)/, ...tooLong },
  { status: [400, 413], words: contextWords, ...tooLong },
  {
    // Seen with both codes in Copilot's CLI, 2026-08: the text is right.
    status: [400],
    code: /^(?:unsupported_api_for_model|model_not_supported)/,
    words: /not accessible via the \S+ endpoint/i,
    kind: "invalid_request",
    clientCode: "unsupported_api_for_model",
    sentence: "GitHub's model list names this endpoint for the model, and GitHub does not serve it there.",
    hint: "The list is read again within ten minutes; use another model until then.",
  },
  { status: [400], code: /^model_not_supported/, ...lacksModel, clientCode: "model_not_found" },
  { status: [400], code: /^model_not_available_for_integrator/, ...otherIntegrators },
  { status: [400], words: /not available for integrator/i, ...otherIntegrators },
  { status: [400], code: /^no_available_model_endpoints/, ...noEndpoints },
  { status: [400], words: /no endpoints available for this model/i, ...noEndpoints },
  { status: suspensionStatuses, code: suspensionCodes, ...suspended },
  { status: suspensionStatuses, words: suspensionWords, ...suspended },
  {
    status: [401],
    words: /Personal Access Token does not have Copilot Requests permission/i,
    ...refusedToken,
    sentence: "Sign in again, on the page Accounts or with `dragoman auth`.",
  },
  { status: [400, 403], words: personalTokenWords, ...refusedToken, sentence: personalTokenReason },
  // Seen in VS Code's client over WebSockets, 2026-10.
  {
    status: [400, 401, 403],
    code: /^session_expired/,
    remedy: "renew-session",
    kind: "upstream",
    clientStatus: 502,
    sentence: "A new session was refused too; try again in a moment.",
  },
  { status: [401], remedy: "refresh-session", kind: "no_account", clientStatus: 503 },
  {
    status: [402, 403, 429],
    code: /^free_/,
    ...usedUp,
    sentence: "The free plan's share is used up{until}.",
  },
  {
    status: [402, 403, 429],
    code: /^overage_limit/,
    ...usedUp,
    sentence: "The budget for use beyond the plan is spent{until}; it is set at https://github.com/settings/billing.",
  },
  {
    // VS Code's client, 2026-10: a person raises the budget on the page, a seat's admin does it for the seat.
    status: [402, 403, 429],
    code: /^additional_spend/,
    ...usedUp,
    clientCode: "additional_spend_limit_reached",
    untilRaised: true,
    sentence:
      "The budget for use beyond the plan is spent, and only raising it ends that: at https://github.com/settings/billing/budgets, or by the organization's admin for a seat.",
    hint: freeMayWork,
  },
  {
    status: [402, 403, 429],
    code: /^billing_not/,
    ...usedUp,
    sentence: "Use beyond the plan needs billing to be set up at https://github.com/settings/billing.",
  },
  { status: [402], ...quotaIsUsedUp },
  { status: [403, 429], code: /^(?:insufficient_)?quota/, ...quotaIsUsedUp },
  { status: [403, 429], words: quotaWords, ...quotaIsUsedUp },
  { status: [403], code: /rate_limit/, ...slowDown },
  { status: [403], words: /rate limit/i, ...slowDown },
  {
    // Clients that an organization does not allow hear the same, or nothing at all (oh-my-pi, 2026-09).
    status: [403],
    words: /^$|not authorized to use this Copilot feature|access to this endpoint is forbidden/i,
    ...noRight,
    denies: "right",
    clientCode: "model_not_allowed",
    sentence: enableFirst,
  },
  { status: [403], ...noRight, sentence: enableFirst },
  { status: [413], kind: "too_large", sentence: "Large images are the usual reason: send fewer or smaller ones." },
  { status: [421], remedy: "relearn-host", kind: "upstream", clientStatus: 502 },
  { status: [422], kind: "invalid_request", clientStatus: 400, clientCode: "content_filter" },
  {
    status: [429],
    code: /^user_global/,
    ...slowDown,
    sentence: "This limit holds for the whole account, whatever the model{until}.",
  },
  {
    status: [429],
    code: /^user_weekly/,
    ...slowDown,
    maxWait: 7 * daySeconds,
    sentence: "This limit holds for the whole account, whatever the model{until}.",
  },
  {
    status: [429],
    code: /^user_model/,
    ...slowDown,
    scope: "model",
    sentence: "This limit holds for this model only{until}; another one may work at once.",
  },
  {
    status: [429],
    code: /^model_overloaded/,
    kind: "rate_limit",
    sentence: "Another account would not help; another model may.",
  },
  {
    status: [429],
    code: ofEveryModel,
    kind: "rate_limit",
    sentence: "This limit holds for every account and model alike{until}: only waiting helps.",
  },
  { status: [429], code: /^(?:rate_limit|agent_mode_limit|too_many_requests)/, ...limited },
  { status: [429], ...limited },
  {
    status: [466],
    kind: "upstream",
    clientStatus: 502,
    clientCode: "api_version_retired",
    sentence:
      'dragoman is too old for this upstream: update it, or set "upstreamHeaders": {"x-github-api-version": "<newer>"} in config.json.',
  },
  { status: [499], kind: "upstream", clientStatus: 502 },
];

/**
 * The status for an error that arrives in the body of a 200. Types are those of Anthropic's documentation of errors,
 * codes those of Copilot and of OpenAI.
 */
export const statusOf = (code: string): number => statuses.find(([pattern]) => pattern.test(code))?.[1] ?? 502;

/** No code matches two rows. */
export const statuses: readonly [code: RegExp, status: number][] = [
  [/^overloaded/, 529],
  [
    /^(?:rate_limit|user_(?:global|weekly|model)_rate_limit|integration_rate_limit|agent_mode_limit|too_many_requests|model_overloaded|extension_blocked)/,
    429,
  ],
  [/^(?:(?:insufficient_)?quota|free_|overage_limit|additional_spend|billing_)/, 402],
  [/^content_(?:filter|policy)/, 422],
  [
    /^(?:bad_request|invalid_(?:request|prompt|encrypted|image|value|type)|context_length|model_max_prompt|string_above|un(?:supported|known|recognized)_|missing_|off_topic|previous_response_not_found|model_not_supported|model_not_available|no_available_model|websocket_connection_limit)/,
    400,
  ],
  [/^(?:authentication_error|unauthorized|session_expired)/, 401],
  [/^(?:permission|forbidden)/, 403],
  [suspensionCodes, 403],
  [/^not_found/, 404],
  [/^user_request_timeout/, 408],
  [/^request_too_large/, 413],
  [/^timeout/, 504],
  [/^(?:api_error|server_error|internal_(?:server_)?error)/, 500],
  [/^(?:service_unavailable|upstream_provider_rate_limit)/, 503],
];

/** Codes and types of errors that need no row of their own; from Copilot's clients and the vendors' documentation. */
const otherCodes =
  /^(?:decoder_error|failed_precondition|image_|invalid_function_parameters|json_|model_(?:not_found|pending)|not_supported|payload_too_large|tool_|unprocessable|upstream_)/;

/** Whether an upstream's error code or type has been seen before. */
export const isKnownCode = (code: string): boolean =>
  otherCodes.test(code) ||
  statuses.some(([pattern]) => pattern.test(code)) ||
  rows.some((row) => row.code?.test(code) ?? false);
