/** What each error answer of GitHub Copilot means, as a table. `failure-match.ts` finds the row of an answer. */

import { contextWords } from "../../../dialects/hub/context-limit";
import {
  suspensionAdvice,
  suspensionCodes,
  suspensionStatuses,
  suspensionWords,
} from "../../../people/accounts/suspension";
import type { FailureRow } from "./failure-row";
import { refusedTokenRows } from "./refused-token-rows";

/** Seconds. */
export const daySeconds = 86_400;
/** Sessions whose use GitHub limits last five hours (its message of 2026-07 names them). */
const sessionSeconds = 5 * 3600;

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

const limitedAccount = "GitHub limits this account's requests.";
const slowDown = { state: "cooling", remedy: "next-account", kind: "rate_limit", clientStatus: 429 } as const;

/** A rate limit whose scope the upstream does not state. */
const limited = {
  ...slowDown,
  scope: "premium",
  sentence: "GitHub limits this account's requests{until}, and does not say which.",
  hint: "Other models may still work.",
} as const satisfies Partial<FailureRow>;

const replayed = {
  remedy: "repair",
  kind: "invalid_request",
  clientStatus: 400,
  meaning: "The conversation has an item that this account or model did not make.",
} as const;
/** How OpenAI and Anthropic refuse the schema of a tool, or of the reply. */
const refusedSchema = {
  remedy: "fit-tools",
  kind: "invalid_request",
  meaning: "The schema of a tool or of the reply has something that the model's API does not support.",
} as const;
const tooLong = {
  kind: "invalid_request",
  clientStatus: 400,
  clientCode: "context_length_exceeded",
  meaning: "The prompt does not fit into the model's context window.",
} as const;
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
const enableFirst =
  "The model or feature may have to be enabled for the account first, by its owner or organization: https://github.com/settings/copilot/features.";
const noRight = { remedy: "renew-token-or-host", kind: "permission" } as const;
const suspended = {
  state: "failed",
  suspended: true,
  kind: "permission",
  clientStatus: 403,
  clientCode: "account_suspended",
  sentence: suspensionAdvice,
} as const;

/** Codes of limits that hold for every account and model alike. */
export const ofEveryModel = /^(?:integration_rate_limit|extension_blocked)/;

/** `src/deploy/documents/failure-examples.ts` has an answer for each row. */
export const rows: readonly FailureRow[] = [
  // Items made by another account. A 401 here does not mean that this account's token is bad.
  {
    status: [400, 401],
    words: /does not belong to this connection/i,
    ...replayed,
  },
  {
    status: [400],
    code: /^invalid_encrypted_content/,
    stream: 400,
    ...replayed,
  },
  {
    status: [400],
    code: /^string_above_max_length/,
    stream: 400,
    param: /^input\[\d+\]\.id$/,
    ...replayed,
  },
  {
    status: [400],
    words:
      /item_id did not match|input\[\d+\]\.id'?: string too long|invalid `(?:signature|data)` in `(?:redacted_)?thinking`|`?thinking`? blocks in the latest assistant message cannot be modified|each thinking block must contain thinking/i,
    ...replayed,
  },
  // The session token of Auto has ended, or belongs to another account. The status is not known (texts seen 2026-03).
  {
    status: [400, 401, 403],
    words: /copilot-session-token/i,
    kind: "upstream",
    clientStatus: 502,
    clientCode: "auto_token_refused",
    meaning: "GitHub does not accept the session token of Auto any more.",
  },
  {
    status: [400],
    code: /^invalid_(?:function_parameters|json_schema)/,
    ...refusedSchema,
  },
  {
    status: [400],
    words: /invalid schema for function|input_schema does not support|input_schema\.type: field required/i,
    ...refusedSchema,
  },
  {
    status: [400],
    words: /tool_choice: type "tool" and "any" are not supported|thinking may not be enabled when tool_choice forces/i,
    remedy: "free-choice",
    kind: "invalid_request",
    clientStatus: 400,
    meaning: "The model does not take a choice that forces a call.",
  },
  {
    status: [400],
    words: /unexpected role "system"/i,
    remedy: "fold-system",
    kind: "invalid_request",
    clientStatus: 400,
    meaning: "The model takes no system messages within the conversation.",
  },
  {
    // Seen of a Claude model in 2026-07.
    status: [400],
    words: /external image URLs are not supported/i,
    kind: "invalid_request",
    clientStatus: 400,
    sentence: "GitHub Copilot does not fetch images: send the image itself, as base64.",
  },
  {
    status: [400],
    code: /^(?:model_max_prompt_tokens_exceeded|context_length_exceeded)/,
    stream: 400,
    ...tooLong,
  },
  {
    status: [400, 413],
    words: contextWords,
    ...tooLong,
  },
  {
    // What a prompt that is far too long gets, whatever it consists of (pi 1.4.0, 2026-10).
    status: [413],
    words: /failed to parse request/i,
    ...tooLong,
  },
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
  {
    status: [400],
    code: /^model_not_supported/,
    stream: 400,
    ...lacksModel,
    clientCode: "model_not_found",
    meaning: "The account does not have this model, though its list names it.",
  },
  {
    status: [400],
    code: /^model_not_available_for_integrator/,
    stream: 400,
    ...otherIntegrators,
  },
  {
    status: [400],
    words: /not available for integrator/i,
    ...otherIntegrators,
  },
  {
    status: [400],
    code: /^no_available_model_endpoints/,
    stream: 400,
    ...noEndpoints,
  },
  {
    status: [400],
    words: /no endpoints available for this model/i,
    ...noEndpoints,
  },
  {
    status: suspensionStatuses,
    code: suspensionCodes,
    stream: 403,
    ...suspended,
  },
  {
    status: suspensionStatuses,
    words: suspensionWords,
    ...suspended,
  },
  ...refusedTokenRows,
  {
    status: [401],
    remedy: "renew-token",
    kind: "no_account",
    clientStatus: 503,
    meaning:
      "GitHub does not accept the account's sign-in any more: sign in again, on the page Accounts or with `dragoman auth`.",
  },
  {
    status: [402, 403, 429],
    code: /^free_/,
    stream: 402,
    ...usedUp,
    sentence: "The free plan's share is used up{until}.",
  },
  {
    status: [402, 403, 429],
    code: /^overage_limit/,
    stream: 402,
    ...usedUp,
    sentence: "The budget for use beyond the plan is spent{until}; it is set at https://github.com/settings/billing.",
  },
  {
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
    status: [402, 403, 429],
    code: /^billing_not/,
    stream: 402,
    ...usedUp,
    sentence: "Use beyond the plan needs billing to be set up at https://github.com/settings/billing.",
  },
  {
    // A code of GitHub's own runtime (schema of its SDK, 2026-09), for a limit of hours.
    status: [402, 403, 429],
    code: /^session_quota/,
    stream: 429,
    ...slowDown,
    maxWait: sessionSeconds,
    sentence:
      "This account has reached its limit for a session of a few hours{until}; the month's quota is another one.",
    hint: "Another account may work at once.",
  },
  { status: [402], ...quotaIsUsedUp },
  {
    status: [403, 429],
    code: /^(?:insufficient_)?quota/,
    stream: 402,
    ...quotaIsUsedUp,
  },
  { status: [403, 429], words: quotaWords, ...quotaIsUsedUp },
  { status: [403], code: /rate_limit/, ...slowDown, meaning: limitedAccount },
  {
    status: [403],
    words: /rate limit/i,
    ...slowDown,
    meaning: limitedAccount,
  },
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
  {
    status: [413],
    kind: "too_large",
    sentence: "Large images are the usual reason: send fewer or smaller ones.",
  },
  {
    status: [421],
    remedy: "relearn-host",
    kind: "upstream",
    clientStatus: 502,
    meaning: "GitHub serves this account at another host.",
  },
  {
    status: [422],
    kind: "invalid_request",
    clientStatus: 400,
    clientCode: "content_filter",
    meaning: "A content filter refused the request.",
  },
  {
    status: [429],
    code: /^user_global/,
    stream: 429,
    ...slowDown,
    sentence: "This limit holds for the whole account, whatever the model{until}.",
  },
  {
    status: [429],
    code: /^user_weekly/,
    stream: 429,
    ...slowDown,
    maxWait: 7 * daySeconds,
    sentence: "This limit holds for the whole account, whatever the model{until}.",
  },
  {
    status: [429],
    code: /^user_model/,
    stream: 429,
    ...slowDown,
    scope: "model",
    sentence: "This limit holds for this model only{until}; another one may work at once.",
  },
  {
    status: [429],
    code: /^model_overloaded/,
    stream: 429,
    kind: "rate_limit",
    sentence: "Another account would not help; another model may.",
  },
  {
    status: [429],
    code: ofEveryModel,
    stream: 429,
    kind: "rate_limit",
    sentence: "This limit holds for every account and model alike{until}: only waiting helps.",
  },
  {
    status: [429],
    code: /^(?:rate_limit|agent_mode_limit|too_many_requests)/,
    stream: 429,
    ...limited,
  },
  { status: [429], ...limited },
  {
    status: [466],
    kind: "upstream",
    clientStatus: 502,
    clientCode: "api_version_retired",
    sentence:
      'dragoman is too old for this upstream: update it, or set "upstreamHeaders": {"x-github-api-version": "<newer>"} in config.json.',
  },
  {
    status: [499],
    kind: "upstream",
    clientStatus: 502,
    meaning: "GitHub ended the request as if the client had hung up.",
  },
];
