/** What an error answer of the upstream means: which account it concerns, what to try, and the error for the client. */

import type { AccountState } from "../accounts/account";
import { type ErrorKind, ProxyError, retryHeaders } from "../errors";
import { zonedTime } from "../format";
import { isObject, parseJson } from "../json";
import { daySeconds, type FailureRow, isKnownCode, rowOf, statusOf, type UpstreamError } from "./failure-rows";
import { patternOf, refusedParam } from "./unsupported-params";

export interface Failure {
  /** What to try, as long as no byte has been sent to the client. */
  remedy: NonNullable<FailureRow["remedy"]> | "drop-param" | "none";
  /** With `drop-param`: the pattern of the refused parameter. */
  param?: string;
  /** The new state of the account that was used, with the upstream's message as reason; undefined if it keeps its state. */
  account?: AccountState;
  /** The upstream's code, if it is not known here. */
  newCode?: string;
  /** What the state applies to; the whole account when missing. */
  scope?: FailureRow["scope"];
  /** What the client gets if nothing helped. */
  error: ProxyError;
}

/**
 * @param body The beginning of the answer's body: JSON in any of its forms, plain text, HTML or nothing.
 * @param now Milliseconds.
 */
export function readFailure(status: number, headers: Headers, body: string, now: number): Failure {
  return judge(status, headers, readErrorBody(body), now);
}

/** An error in the body of a 200, before anything was sent to the client: handled like an error answer. */
export function readBrokenReply(error: { code: string; message: string }, headers: Headers, now: number): Failure {
  return judge(statusOf(error.code), headers, error, now);
}

/**
 * The error in the body of a 200 that should have been a stream; undefined if there is none.
 * @param body As {@link readFailure}.
 */
export function upstreamErrorIn(body: string): { code: string; message: string } | undefined {
  const json = parseJson(body);
  return isObject(json) && (json.error || json.type === "error") ? readErrorBody(body) : undefined;
}

function judge(status: number, headers: Headers, upstream: UpstreamError, now: number): Failure {
  const row = rowOf(status, upstream);
  const refused = row || status !== 400 ? undefined : refusedParam(upstream);
  const param = refused === undefined ? undefined : patternOf(refused);
  const retryAfter = readRetryAfter(headers, now);
  const maxWait = row?.maxWait ?? daySeconds;
  const wait = retryAfter === undefined ? undefined : Math.min(retryAfter, maxWait);
  const until = wait === undefined ? undefined : now + wait * 1000;
  const message = upstream.message || `GitHub Copilot answered with status ${status}.`;
  const reason = (end: string) => row?.sentence?.replace("{until}", end);
  const error = new ProxyError(
    row?.kind ?? kindOf(status),
    joinSentences(message, reason(until === undefined ? "" : ` until ${zonedTime(until, now)}`), row?.hint),
    {
      status: row?.clientStatus ?? status,
      code: row?.clientCode ?? (upstream.code || undefined),
      param: upstream.param,
      headers: wait === undefined ? {} : retryHeaders(Math.min(wait, daySeconds)),
    },
  );
  return {
    remedy: row?.remedy ?? (param === undefined ? "none" : "drop-param"),
    param,
    account: row?.state && {
      name: row.state,
      until,
      // Without the time: the state has it in `until`.
      reason: joinSentences(message, reason("")),
      suspended: row.suspended,
      premiumOnly: row.scope === "premium",
      doubtful: row.state === "cooling" && retryAfter !== undefined && retryAfter > maxWait,
    },
    newCode: upstream.code === "" || isKnownCode(upstream.code) ? undefined : upstream.code,
    scope: row?.scope,
    error,
  };
}

/** The upstream's message and our sentences, with a full stop between them. */
function joinSentences(message: string, ...ours: (string | undefined)[]): string {
  const sentences = ours.filter((sentence) => sentence !== undefined && sentence !== "");
  if (sentences.length === 0) return message;
  return [/[.!?…:]["'”’)\]]?$/.test(message) ? message : `${message}.`, ...sentences].join(" ");
}

/** The kind of error for a status, without regard to the body. */
export const kindOf = (status: number): ErrorKind =>
  kindsByStatus[status] ?? (status < 500 ? "invalid_request" : "upstream");

const kindsByStatus: Record<number, ErrorKind> = {
  404: "not_found",
  408: "timeout",
  413: "too_large",
  429: "rate_limit",
  504: "timeout",
};

/** Message, code and param of an error body in any form, whatever its content type. */
function readErrorBody(body: string): UpstreamError {
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

/** Seconds from a number or a date, at least 0; undefined if there is no valid one. */
function readRetryAfter(headers: Headers, now: number): number | undefined {
  // OpenAI's SDKs read this header too, and prefer it.
  const milliseconds = headers.get("retry-after-ms") ?? "";
  if (/^\d+(?:\.\d+)?$/.test(milliseconds)) return Math.ceil(Number(milliseconds) / 1000);
  const value = headers.get("retry-after") ?? headers.get("x-ratelimit-user-retry-after");
  if (value === null) return undefined;
  const date = /^[A-Z][a-z]+, /.test(value) ? Date.parse(value) : Number.NaN;
  const seconds = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : (date - now) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}
