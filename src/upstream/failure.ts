/** What an upstream's error answer means: whose fault it is, what helps, and how to say it to a person. */

import type { AccountState } from "../accounts/account";
import { type ErrorKind, ProxyError, retryHeaders } from "../errors";
import { zonedTime } from "../format";
import { isObject, parseJson } from "../json";
import { daySeconds, type FailureRow, rowOf, statusOf } from "./failure-rows";
import { patternOf, refusedParam } from "./unsupported-params";

export interface Failure {
  /** What may help, before any byte went to the client. */
  remedy: NonNullable<FailureRow["remedy"]> | "drop-param" | "none";
  /** With `drop-param`: the pattern of what is refused. */
  param?: string;
  /** What it says about the account that was used; undefined when it says nothing. Its reason holds the upstream's words. */
  account?: AccountState;
  /** What that holds for; the whole account when missing. */
  scope?: FailureRow["scope"];
  /** What the client is told when nothing helped. */
  error: ProxyError;
}

/**
 * @param body The beginning of the answer's body: JSON in any of its forms, plain text, HTML or nothing.
 * @param now Milliseconds.
 */
export function readFailure(status: number, headers: Headers, body: string, now: number): Failure {
  return judge(status, headers, readWords(body), now);
}

/** An error told in the body of a good answer, before anything went out: the error answer it should have been. */
export function readBrokenReply(told: { code: string; message: string }, headers: Headers, now: number): Failure {
  return judge(statusOf(told.code), headers, told, now);
}

/**
 * The error in the body of a good answer that should have been a stream; undefined when it holds none.
 * @param body As {@link readFailure}.
 */
export function upstreamErrorIn(body: string): { code: string; message: string } | undefined {
  const json = parseJson(body);
  return isObject(json) && (json.error || json.type === "error") ? readWords(body) : undefined;
}

function judge(status: number, headers: Headers, told: Words, now: number): Failure {
  const row = rowOf(status, told);
  const refused = row || status !== 400 ? undefined : refusedParam(told);
  const param = refused === undefined ? undefined : patternOf(refused);
  const asked = readRetryAfter(headers, now);
  const longest = row?.longest ?? daySeconds;
  const wait = asked === undefined ? undefined : Math.min(asked, longest);
  const until = wait === undefined ? undefined : now + wait * 1000;
  const spoken = told.message || `GitHub Copilot answered with status ${status}.`;
  const why = (end: string) => row?.sentence?.replace("{until}", end);
  const error = new ProxyError(
    row?.kind ?? kindOf(status),
    together(spoken, why(until === undefined ? "" : ` until ${zonedTime(until, now)}`), row?.hint),
    {
      status: row?.answer ?? status,
      code: row?.says ?? (told.code || undefined),
      param: told.param,
      headers: wait === undefined ? {} : retryHeaders(Math.min(wait, daySeconds)),
    },
  );
  return {
    remedy: row?.remedy ?? (param === undefined ? "none" : "drop-param"),
    param,
    account: row?.state && {
      name: row.state,
      until,
      // The state itself says until when.
      reason: together(spoken, why("")),
      suspended: row.suspended,
      premiumOnly: row.scope === "premium",
      doubtful: row.state === "cooling" && asked !== undefined && asked > longest,
    },
    scope: row?.scope,
    error,
  };
}

/** Sentences of several speakers, with a full stop between them. */
function together(words: string, ...ours: (string | undefined)[]): string {
  const rest = ours.filter((sentence) => sentence !== undefined && sentence !== "");
  if (rest.length === 0) return words;
  return [/[.!?…:]["'”’)\]]?$/.test(words) ? words : `${words}.`, ...rest].join(" ");
}

/** What a status means by itself, whoever answered with it. */
export const kindOf = (status: number): ErrorKind =>
  kindsByStatus[status] ?? (status < 500 ? "invalid_request" : "upstream");

const kindsByStatus: Record<number, ErrorKind> = {
  404: "not_found",
  408: "timeout",
  413: "too_large",
  429: "rate_limit",
  504: "timeout",
};

interface Words {
  message: string;
  code: string;
  param?: string;
}

/** The words of an error body, whatever its form and its content type. */
function readWords(body: string): Words {
  const json = parseJson(body);
  if (isObject(json)) {
    const error = isObject(json.error) ? json.error : json;
    const text = (value: unknown) => (typeof value === "string" ? value : "");
    return {
      message: (text(error.message) || text(json.error)).trim(),
      code: text(error.code) || (text(error.type) === "error" ? "" : text(error.type)),
      param: text(error.param) || undefined,
    };
  }
  const looksLikeMarkup = /^\s*</.test(body);
  return { message: looksLikeMarkup ? "" : body.trim().slice(0, 500), code: "" };
}

/** Seconds, from a number or a date, not below 0. What does not read is not said. */
function readRetryAfter(headers: Headers, now: number): number | undefined {
  // As OpenAI's SDKs read it too, and before the other.
  const milliseconds = headers.get("retry-after-ms") ?? "";
  if (/^\d+(?:\.\d+)?$/.test(milliseconds)) return Math.ceil(Number(milliseconds) / 1000);
  const value = headers.get("retry-after") ?? headers.get("x-ratelimit-user-retry-after");
  if (value === null) return undefined;
  const date = /^[A-Z][a-z]+, /.test(value) ? Date.parse(value) : Number.NaN;
  const seconds = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : (date - now) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}
