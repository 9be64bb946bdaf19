/** What each error answer of GitHub Copilot means, as a table. `failure-match.ts` finds the row of an answer. */
import { suspensionCodes, suspensionStatuses, suspensionWords } from "../../accounts/suspension";
import { personalTokenReason, personalTokenWords } from "../../accounts/token-exchange";
import { contextWords } from "../../dialects/hub/context-limit";
import type { FailureRow } from "./failure-row";

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
export const ofEveryModel = /^(?:integration_rate_limit|extension_blocked)/;

export const rows: readonly FailureRow[] = [
  // Items made by another account. A 401 here does not mean that this account's token is bad.
  {
    example: [401, "", "input item ID does not belong to this connection"],
    status: [400, 401],
    words: /does not belong to this connection/i,
    ...replayed,
  },
  {
    example: [400, "invalid_encrypted_content", "It is."],
    status: [400],
    code: /^invalid_encrypted_content/,
    stream: 400,
    ...replayed,
  },
  {
    example: [400, "string_above_max_length", "It is.", "input[2].id"],
    status: [400],
    code: /^string_above_max_length/,
    stream: 400,
    param: /^input\[\d+\]\.id$/,
    ...replayed,
  },
  {
    example: [400, "invalid_request_body", "Encrypted content item_id did not match the target item id."],
    status: [400],
    words:
      /item_id did not match|input\[\d+\]\.id'?: string too long|invalid `(?:signature|data)` in `(?:redacted_)?thinking`/i,
    ...replayed,
  },
  // The session token of Auto has ended, or belongs to another account. The status is not known (texts seen 2026-03).
  {
    example: [400, "bad_request", "Invalid Copilot-Session-Token"],
    status: [400, 401, 403],
    words: /copilot-session-token/i,
    kind: "upstream",
    clientStatus: 502,
    clientCode: "auto_token_refused",
  },
  {
    example: [400, "invalid_function_parameters", "Invalid schema for function 'f': …"],
    status: [400],
    code: /^invalid_function_parameters/,
    ...refusedSchema,
  },
  {
    example: [400, "invalid_request_body", "Invalid schema for function 'f': '\\p{L}' is not a 'regex'."],
    status: [400],
    words: /invalid schema for function|input_schema does not support|input_schema\.type: field required/i,
    ...refusedSchema,
  },
  {
    example: [400, "context_length_exceeded", "It is."],
    status: [400],
    code: /^(?:model_max_prompt_tokens_exceeded|context_length_exceeded)/,
    stream: 400,
    ...tooLong,
  },
  {
    example: [400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"],
    status: [400, 413],
    words: contextWords,
    ...tooLong,
  },
  {
    example: [400, "model_not_supported", 'model "m" is not accessible via the /chat/completions endpoint'],
    // Seen with both codes in Copilot's CLI, 2026-08: the text is right.
    status: [400],
    code: /^(?:unsupported_api_for_model|model_not_supported)/,
    words: /not accessible via the \S+ endpoint/i,
    kind: "invalid_request",
    clientCode: "unsupported_api_for_model",
    sentence: "GitHub's model list names this endpoint for the model, and GitHub does not serve it there.",
    hint: "The list is read again within ten minutes; use another model until then.",
  },
  {
    example: [400, "model_not_supported", "It is not."],
    status: [400],
    code: /^model_not_supported/,
    stream: 400,
    ...lacksModel,
    clientCode: "model_not_found",
  },
  {
    example: [400, "model_not_available_for_integrator", "It is not."],
    status: [400],
    code: /^model_not_available_for_integrator/,
    stream: 400,
    ...otherIntegrators,
  },
  {
    example: [400, "", 'The requested model is not available for integrator "x". Available models: [a].'],
    status: [400],
    words: /not available for integrator/i,
    ...otherIntegrators,
  },
  {
    example: [400, "no_available_model_endpoints", "It is not."],
    status: [400],
    code: /^no_available_model_endpoints/,
    stream: 400,
    ...noEndpoints,
  },
  {
    example: [400, "", "no endpoints available for this model under your current plan and policies"],
    status: [400],
    words: /no endpoints available for this model/i,
    ...noEndpoints,
  },
  {
    example: [403, "spammy_user", "Flagged."],
    status: suspensionStatuses,
    code: suspensionCodes,
    stream: 403,
    ...suspended,
  },
  {
    example: [401, "", "Your account was suspended"],
    status: suspensionStatuses,
    words: suspensionWords,
    ...suspended,
  },
  {
    example: [401, "", "unauthorized: Personal Access Token does not have Copilot Requests permission"],
    status: [401],
    words: /Personal Access Token does not have Copilot Requests permission/i,
    ...refusedToken,
    sentence: "Sign in again, on the page Accounts or with `dragoman auth`.",
  },
  {
    example: [400, "", "Personal Access Tokens are not supported for this endpoint"],
    status: [400, 403],
    words: personalTokenWords,
    ...refusedToken,
    sentence: personalTokenReason,
  },
  {
    example: [401, "", "unauthorized: token expired"],
    status: [401],
    remedy: "refresh-session",
    kind: "no_account",
    clientStatus: 503,
  },
  {
    example: [402, "free_quota_exceeded", "Used up."],
    status: [402, 403, 429],
    code: /^free_/,
    stream: 402,
    ...usedUp,
    sentence: "The free plan's share is used up{until}.",
  },
  {
    example: [402, "overage_limit_reached", "Used up."],
    status: [402, 403, 429],
    code: /^overage_limit/,
    stream: 402,
    ...usedUp,
    sentence: "The budget for use beyond the plan is spent{until}; it is set at https://github.com/settings/billing.",
  },
  {
    example: [402, "additional_spend_limit_reached", "Spent."],
    // VS Code's client, 2026-10: a person raises the budget on the page, a seat's admin does it for the seat.
    status: [402, 403, 429],
    code: /^additional_spend/,
    stream: 402,
    ...usedUp,
    clientCode: "additional_spend_limit_reached",
    untilRaised: true,
    sentence:
      "The budget for use beyond the plan is spent, and only raising it ends that: at https://github.com/settings/billing/budgets, or by the organization's admin for a seat.",
    hint: freeMayWork,
  },
  {
    example: [402, "billing_not_configured", "Used up."],
    status: [402, 403, 429],
    code: /^billing_not/,
    stream: 402,
    ...usedUp,
    sentence: "Use beyond the plan needs billing to be set up at https://github.com/settings/billing.",
  },
  { example: [402, "quota_exceeded", "Used up."], status: [402], ...quotaIsUsedUp },
  {
    example: [429, "quota_exceeded", "Used up."],
    status: [403, 429],
    code: /^(?:insufficient_)?quota/,
    stream: 402,
    ...quotaIsUsedUp,
  },
  { example: [403, "", "You exceeded your quota."], status: [403, 429], words: quotaWords, ...quotaIsUsedUp },
  { example: [403, "rate_limited", "Slow."], status: [403], code: /rate_limit/, ...slowDown },
  { example: [403, "", "API rate limit exceeded for user ID 1"], status: [403], words: /rate limit/i, ...slowDown },
  {
    example: [403, "", "access to this endpoint is forbidden"],
    // Clients that an organization does not allow hear the same, or nothing at all (oh-my-pi, 2026-09).
    status: [403],
    words: /^$|not authorized to use this Copilot feature|access to this endpoint is forbidden/i,
    ...noRight,
    denies: "right",
    clientCode: "model_not_allowed",
    sentence: enableFirst,
  },
  { example: [403, "new_code", "It is not allowed."], status: [403], ...noRight, sentence: enableFirst },
  {
    example: [413, "", "Request Entity Too Large"],
    status: [413],
    kind: "too_large",
    sentence: "Large images are the usual reason: send fewer or smaller ones.",
  },
  {
    example: [421, "", "Misdirected Request"],
    status: [421],
    remedy: "relearn-host",
    kind: "upstream",
    clientStatus: 502,
  },
  {
    example: [422, "", "filtered"],
    status: [422],
    kind: "invalid_request",
    clientStatus: 400,
    clientCode: "content_filter",
  },
  {
    example: [429, "user_global_rate_limited", "Slow."],
    status: [429],
    code: /^user_global/,
    stream: 429,
    ...slowDown,
    sentence: "This limit holds for the whole account, whatever the model{until}.",
  },
  {
    example: [429, "user_weekly_rate_limited", "Slow."],
    status: [429],
    code: /^user_weekly/,
    stream: 429,
    ...slowDown,
    maxWait: 7 * daySeconds,
    sentence: "This limit holds for the whole account, whatever the model{until}.",
  },
  {
    example: [429, "user_model_rate_limited", "Slow."],
    status: [429],
    code: /^user_model/,
    stream: 429,
    ...slowDown,
    scope: "model",
    sentence: "This limit holds for this model only{until}; another one may work at once.",
  },
  {
    example: [429, "model_overloaded", "Slow."],
    status: [429],
    code: /^model_overloaded/,
    stream: 429,
    kind: "rate_limit",
    sentence: "Another account would not help; another model may.",
  },
  {
    example: [429, "extension_blocked", "Slow."],
    status: [429],
    code: ofEveryModel,
    stream: 429,
    kind: "rate_limit",
    sentence: "This limit holds for every account and model alike{until}: only waiting helps.",
  },
  {
    example: [429, "rate_limited", "Slow."],
    status: [429],
    code: /^(?:rate_limit|agent_mode_limit|too_many_requests)/,
    stream: 429,
    ...limited,
  },
  { example: [429, "", "Slow."], status: [429], ...limited },
  {
    example: [466, "", "too old"],
    status: [466],
    kind: "upstream",
    clientStatus: 502,
    clientCode: "api_version_retired",
    sentence:
      'dragoman is too old for this upstream: update it, or set "upstreamHeaders": {"x-github-api-version": "<newer>"} in config.json.',
  },
  { example: [499, "", "closed"], status: [499], kind: "upstream", clientStatus: 502 },
];
