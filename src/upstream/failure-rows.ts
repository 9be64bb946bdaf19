/** What each failure of GitHub Copilot's means, as a table: its code decides, its words where it has no code we know. */
import type { ErrorKind } from "../errors";

export interface FailureRow {
  status: number[];
  /** Of the answer's code. GitHub adds `:plan` to some: they are compared by their beginning. */
  code?: RegExp;
  /** Of the field that is at fault, beside `code`. */
  param?: RegExp;
  /** Of the message, where no row of this status knows the code. */
  words?: RegExp;
  /** What may help; nothing when missing. */
  remedy?: "refresh-session" | "relearn-host" | "next-account" | "repair" | "fit-tools";
  /** What the account is from now on. */
  state?: "cooling" | "exhausted" | "failed";
  /** What the state is of: the account with this model only, or its models that cost quota; all of it when missing. */
  scope?: "model" | "premium";
  /** Seconds the state may last at most by what the answer says; a day. */
  longest?: number;
  /** All accounts stop until a person has read why. */
  suspended?: boolean;
  kind?: ErrorKind;
  /** The status the client gets, where it is not the upstream's. */
  answer?: number;
  /** The code the client gets, where it is not the upstream's. */
  says?: string;
  /** Why, after the upstream's own words; `{until}` where it says until when. */
  sentence?: string;
  /** What to do. */
  hint?: string;
}

interface Told {
  code: string;
  message: string;
  param?: string;
}

/** The row of a failure: by its code, else by its words, else by its status alone. */
export function rowOf(status: number, { code, message, param = "" }: Told): FailureRow | undefined {
  const all = rows.filter((row) => row.status.includes(status));
  return (
    all.find((row) => row.code?.test(code) && (row.param?.test(param) ?? true)) ??
    all.find((row) => row.words?.test(message)) ??
    all.find((row) => row.code === undefined && row.words === undefined)
  );
}

/** Seconds. */
export const daySeconds = 86_400;

/** A quota that is used up; not the wish that somebody ask for more of it, as some rate limits end. */
const quotaWords =
  /\b(?:no|exceeded|exceeds|used up|out of|over)\b[^.]{0,40}\bquota\b|\bquota\b[^.]{0,40}\b(?:exceeded|exhausted|used up|reached|spent)\b/i;

const freeMayWork = "Models that cost no quota may still work.";

const usedUp = {
  state: "exhausted",
  remedy: "next-account",
  longest: 31 * daySeconds,
  kind: "quota",
  answer: 429,
  says: "quota_exceeded",
} as const satisfies Partial<FailureRow>;

const quotaIsUsedUp = {
  ...usedUp,
  sentence: "This account's quota is used up{until}.",
  hint: freeMayWork,
};

const slowDown = { state: "cooling", remedy: "next-account", kind: "rate_limit", answer: 429 } as const;

/** A limit of which nobody said what it holds for. */
const limited = {
  ...slowDown,
  scope: "premium",
  sentence: "The account rests{until}.",
  hint: freeMayWork,
} as const satisfies Partial<FailureRow>;

const replayed = { remedy: "repair", kind: "invalid_request", answer: 400 } as const;
/** OpenAI's words for a tool's schema that it does not take, and Anthropic's. */
const refusedSchema = { remedy: "fit-tools", kind: "invalid_request" } as const;
const tooLong = { kind: "invalid_request", says: "context_length_exceeded" } as const;
const suspended = {
  state: "failed",
  suspended: true,
  kind: "permission",
  answer: 403,
  says: "account_suspended",
  sentence: "Nothing was retried and no other account was tried: please read GitHub's message before going on.",
} as const;

export const rows: readonly FailureRow[] = [
  // Items made under another account: no sign that this account's own token is bad, though the status may say so.
  { status: [400, 401], words: /does not belong to this connection/i, ...replayed },
  { status: [400], code: /^invalid_encrypted_content/, ...replayed },
  { status: [400], code: /^string_above_max_length/, param: /^input\[\d+\]\.id$/, ...replayed },
  {
    status: [400],
    words:
      /item_id did not match|input\[\d+\]\.id'?: string too long|invalid `(?:signature|data)` in `(?:redacted_)?thinking`/i,
    ...replayed,
  },
  { status: [400], code: /^invalid_function_parameters/, ...refusedSchema },
  {
    status: [400],
    words: /invalid schema for function|input_schema does not support|input_schema\.type: field required/i,
    ...refusedSchema,
  },
  { status: [400], code: /^(?:model_max_prompt_tokens_exceeded|context_length_exceeded)/, ...tooLong },
  {
    status: [400],
    words: /prompt token count of \d+ exceeds|prompt is too long|maximum context length is/i,
    ...tooLong,
  },
  {
    status: [400],
    code: /^model_not_supported/,
    kind: "not_found",
    answer: 404,
    says: "model_not_found",
    remedy: "next-account",
  },
  {
    status: [401, 403],
    code: /^(?:spammy|(?:account_)?suspended|abuse|access_revoked|programmatic_token)/,
    ...suspended,
  },
  {
    status: [401, 403],
    words: /spammy|suspend|abuse|terms of service violation|access_revoked|programmatic_token/i,
    ...suspended,
  },
  {
    status: [401],
    words: /Personal Access Token does not have Copilot Requests permission/i,
    state: "failed",
    remedy: "next-account",
    kind: "no_account",
    answer: 503,
    sentence: "Sign in again with `dragoman auth`.",
  },
  { status: [401], remedy: "refresh-session", kind: "no_account", answer: 503 },
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
    status: [403],
    remedy: "refresh-session",
    kind: "permission",
    sentence:
      "The model or feature may have to be enabled for the account first, by its owner or organization: https://github.com/settings/copilot/features.",
  },
  { status: [413], kind: "too_large", sentence: "Large images are the usual reason: send fewer or smaller ones." },
  { status: [421], remedy: "relearn-host", kind: "upstream", answer: 502 },
  { status: [422], kind: "invalid_request", answer: 400, says: "content_filter" },
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
    longest: 7 * daySeconds,
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
    code: /^(?:integration_rate_limited|extension_blocked)/,
    kind: "rate_limit",
    sentence: "This limit holds for every account and model alike{until}: only waiting helps.",
  },
  { status: [429], code: /^(?:rate_limit|agent_mode_limit|too_many_requests)/, ...limited },
  { status: [429], ...limited },
  {
    status: [466],
    kind: "upstream",
    answer: 502,
    says: "api_version_retired",
    sentence:
      'dragoman is too old for this upstream: update it, or set "upstreamHeaders": {"x-github-api-version": "<newer>"} in config.json.',
  },
  { status: [499], kind: "upstream", answer: 502 },
];

/**
 * The status an upstream would have answered with, had it known in time: for an error told in the body of a 200.
 * Types are those of Anthropic's documentation of errors, codes those of Copilot and of OpenAI's.
 */
export const statusOf = (code: string): number => statuses.find(([pattern]) => pattern.test(code))?.[1] ?? 502;

/** No code is of two rows. */
export const statuses: readonly [code: RegExp, status: number][] = [
  [/^overloaded/, 529],
  [
    /^(?:rate_limit|user_(?:global|weekly|model)_rate_limit|integration_rate_limit|agent_mode_limit|too_many_requests|model_overloaded|extension_blocked)/,
    429,
  ],
  [/^(?:(?:insufficient_)?quota|free_|overage_limit|billing_)/, 402],
  [/^content_(?:filter|policy)/, 422],
  [
    /^(?:invalid_(?:request|prompt|encrypted|image|value|type)|context_length|model_max_prompt|string_above|un(?:supported|known|recognized)_|missing_|off_topic|previous_response_not_found|model_not_supported)/,
    400,
  ],
  [/^(?:authentication_error|unauthorized)/, 401],
  [/^(?:permission|forbidden|spammy|(?:account_)?suspended|abuse|access_revoked|programmatic_token)/, 403],
  [/^not_found/, 404],
  [/^user_request_timeout/, 408],
  [/^request_too_large/, 413],
  [/^timeout/, 504],
  [/^(?:api_error|server_error|internal_(?:server_)?error)/, 500],
  [/^(?:service_unavailable|upstream_provider_rate_limit)/, 503],
];
