/** What an upstream's error answer means: whose fault it is, what helps, and how to say it to a person. */

import type { AccountState } from "../accounts/account";
import { inWords } from "../accounts/when";
import { type Kind, ProxyError, retryHeaders } from "../errors";
import { isObject, parseJson } from "../json";

export interface Failure {
  /** What may help, before any byte went to the client. */
  remedy: "refresh-session" | "relearn-host" | "next-account" | "repair" | "drop-field" | "none";
  /** With `drop-field`: the path of what is refused, as the upstream spells it. */
  field?: string;
  /** What it says about the account that was used; undefined when it says nothing. */
  account?: AccountState;
  /** It says so for this model only. */
  modelOnly?: boolean;
  /** What the client is told when nothing helped. */
  error: ProxyError;
}

/**
 * @param body The beginning of the answer's body: JSON in any of its forms, plain text, HTML or nothing.
 * @param now Milliseconds.
 */
export function readFailure(status: number, headers: Headers, body: string, now: number): Failure {
  const told = readBody(body);
  const words = `${told.code} ${told.message} ${told.param ?? ""}`;
  const row = rows.find((each) => each.status.includes(status) && (each.when === undefined || each.when.test(words)));
  const retryAfter = readRetryAfter(headers, now);
  const field = row ? undefined : refusedField(status, told.message);
  const kind = row?.kind ?? kindOf(status);
  const until = retryAfter === undefined ? undefined : now + retryAfter * 1000;
  const spoken = told.message || `GitHub Copilot answered with status ${status}.`;
  const say = (end: string) => `${spoken} ${row?.sentence?.replace("{until}", end) ?? ""}`.trim();
  const message = say(until === undefined ? "" : ` until ${inWords(until, now)}`);
  return {
    remedy: row?.remedy ?? (field === undefined ? "none" : "drop-field"),
    field,
    // The account's own state says until when.
    account: row?.state && { name: row.state, until, reason: say(""), suspended: row.suspended },
    modelOnly: row?.modelOnly,
    error: new ProxyError(kind, message, {
      status: row?.answer ?? status,
      code: row?.code ?? (told.code || undefined),
      param: told.param,
      headers: retryAfter === undefined ? {} : retryHeaders(Math.min(retryAfter, day)),
    }),
  };
}

/** A good status with an error in its body, before anything was said: the error answer it should have been. */
export function brokenReply({ code, message }: { code: string; message: string }): ProxyError {
  return new ProxyError(kindsOfBroken[code] ?? "upstream", message, { code });
}

const kindsOfBroken: Record<string, Kind> = {
  context_length_exceeded: "invalid_request",
  rate_limit_exceeded: "rate_limit",
  timeout: "timeout",
  no_account: "no_account",
};

interface Row {
  status: number[];
  /** Matched against "code message param". */
  when?: RegExp;
  remedy?: Failure["remedy"];
  state?: "cooling" | "exhausted" | "failed";
  kind?: Kind;
  /** The status the client gets, where it is not the upstream's. */
  answer?: number;
  code?: string;
  /** All accounts stop until a person has read why. */
  suspended?: boolean;
  /** The state is the account's with this model. */
  modelOnly?: boolean;
  /** Added to the upstream's own words: why, and what to do; `{until}` where it says until when. */
  sentence?: string;
}

/** The first row that matches counts. */
const rows: Row[] = [
  // Items made under another account: no sign that this account's own token is bad, though the status may say so.
  {
    status: [400, 401],
    when: /does not belong to this connection/i,
    remedy: "repair",
    kind: "invalid_request",
    answer: 400,
  },
  {
    status: [400],
    when: /invalid_encrypted_content|item_id did not match|(?:string_above_max_length|string too long).*input\[\d+\]\.id|input\[\d+\]\.id'?: string too long|invalid `(?:signature|data)` in `(?:redacted_)?thinking`/i,
    remedy: "repair",
    kind: "invalid_request",
  },
  {
    status: [400],
    when: /model_max_prompt_tokens_exceeded|prompt token count of \d+ exceeds|prompt is too long|context_length/i,
    kind: "invalid_request",
    code: "context_length_exceeded",
  },
  {
    status: [400],
    when: /model_not_supported/,
    kind: "not_found",
    answer: 404,
    code: "model_not_found",
    remedy: "next-account",
  },
  {
    status: [401, 403],
    when: /spammy|suspend|abuse|terms of service violation|access_revoked|programmatic_token/i,
    state: "failed",
    suspended: true,
    kind: "permission",
    answer: 403,
    code: "account_suspended",
    sentence: "Nothing was retried and no other account was tried: please read GitHub's message before going on.",
  },
  {
    status: [401],
    when: /Personal Access Token does not have Copilot Requests permission/i,
    state: "failed",
    remedy: "next-account",
    kind: "no_account",
    answer: 503,
    sentence: "Sign in again with `dragoman auth`.",
  },
  { status: [401], remedy: "refresh-session", kind: "no_account", answer: 503 },
  ...[
    { when: /^free_/, sentence: "The free plan's share is used up{until}." },
    {
      when: /^overage_limit/,
      sentence: "The budget for use beyond the plan is spent{until}; it is set at https://github.com/settings/billing.",
    },
    {
      when: /^billing_not/,
      sentence: "Use beyond the plan needs billing to be set up at https://github.com/settings/billing.",
    },
    { sentence: "This account's quota is used up{until}; models that cost no quota may still work." },
  ].map(
    (each): Row => ({
      ...each,
      status: [402],
      state: "exhausted",
      remedy: "next-account",
      kind: "quota",
      answer: 429,
      code: "quota_exceeded",
    }),
  ),
  { status: [403], when: /rate limit/i, state: "cooling", remedy: "next-account", kind: "rate_limit", answer: 429 },
  { status: [403], when: /quota/i, state: "exhausted", remedy: "next-account", kind: "quota", answer: 429 },
  {
    status: [403],
    remedy: "refresh-session",
    kind: "permission",
    sentence:
      "The model or feature may have to be enabled for the account first, by its owner or organization: https://github.com/settings/copilot/features.",
  },
  { status: [413], kind: "too_large", sentence: "Large images are the usual reason: send fewer or smaller ones." },
  { status: [421], remedy: "relearn-host", kind: "upstream", answer: 502 },
  { status: [422], kind: "invalid_request", answer: 400, code: "content_filter" },
  { status: [429], when: /quota/i, state: "exhausted", remedy: "next-account", kind: "quota" },
  {
    status: [429],
    when: /^(?:user_global|user_weekly)/,
    state: "cooling",
    remedy: "next-account",
    kind: "rate_limit",
    sentence: "This limit holds for the whole account, whatever the model{until}.",
  },
  {
    status: [429],
    when: /^user_model/,
    state: "cooling",
    modelOnly: true,
    remedy: "next-account",
    kind: "rate_limit",
    sentence: "This limit holds for this model only{until}; another one may work at once.",
  },
  {
    status: [429],
    when: /^model_overloaded/,
    kind: "rate_limit",
    sentence: "Another account would not help; another model may.",
  },
  {
    status: [429],
    when: /^(?:integration_rate_limited|extension_blocked)/,
    kind: "rate_limit",
    sentence: "This limit holds for every account and model alike{until}: only waiting helps.",
  },
  {
    status: [429],
    state: "cooling",
    remedy: "next-account",
    kind: "rate_limit",
    sentence: "The account rests{until}.",
  },
  {
    status: [466],
    kind: "upstream",
    answer: 502,
    sentence:
      'dragoman is too old for this upstream: update it, or set "upstreamHeaders": {"x-github-api-version": "<newer>"} in config.json.',
  },
  { status: [499], kind: "upstream", answer: 502 },
];

/** What a status means by itself, whoever answered with it. */
export const kindOf = (status: number): Kind =>
  kindsByStatus[status] ?? (status < 500 ? "invalid_request" : "upstream");

const kindsByStatus: Record<number, Kind> = {
  404: "not_found",
  408: "timeout",
  413: "too_large",
  429: "rate_limit",
  504: "timeout",
};

/** The field a 400 names as one it does not take, unless a request is none without it. */
function refusedField(status: number, message: string): string | undefined {
  if (status !== 400) return undefined;
  const field = refusals.map((pattern) => pattern.exec(message)?.[1]).find((found) => found !== undefined);
  return field === undefined || essential.test(field) ? undefined : field;
}

const refusals = [
  /^([\w.-]+): Extra inputs are not permitted/,
  /(?:Unknown|Unsupported|Unrecognized) (?:request )?(?:parameter|argument)(?: supplied)?: '?([\w.[\]-]+)'?/i,
  /^Function tools with ([\w.]+) are not supported\b/,
];

const essential = /^(?:model|messages|input|max_tokens|stream)$/;

/** The words of an error body, whatever its form and its content type. */
function readBody(body: string): { message: string; code: string; param?: string } {
  const json = parseJson(body);
  if (isObject(json)) {
    const error = isObject(json.error) ? json.error : json;
    const text = (value: unknown) => (typeof value === "string" ? value : "");
    return {
      message: text(error.message).trim(),
      code: text(error.code) || (text(error.type) === "error" ? "" : text(error.type)),
      param: text(error.param) || undefined,
    };
  }
  const looksLikeMarkup = /^\s*</.test(body);
  return { message: looksLikeMarkup ? "" : body.trim().slice(0, 500), code: "" };
}

/** Seconds, from a number or a date; between 0 and a month: quotas start again once a month. What does not read is not said. */
function readRetryAfter(headers: Headers, now: number): number | undefined {
  const value = headers.get("retry-after") ?? headers.get("x-ratelimit-user-retry-after");
  if (value === null) return undefined;
  const date = /^[A-Z][a-z]+, /.test(value) ? Date.parse(value) : Number.NaN;
  const seconds = /^\d+$/.test(value) ? Number(value) : (date - now) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(0, Math.ceil(seconds)), 31 * day);
}

/** Seconds. */
const day = 86_400;
