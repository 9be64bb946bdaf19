/** What an error answer of the upstream means: which account it concerns, what to try, and the error for the client. */

import type { SchemaRefusal } from "../../../dialects/hub/refused-schemas";
import type { ReplyFailure } from "../../../dialects/hub/reply";
import { type ErrorKind, inBoth, ProxyError, retryHeaders, type Words } from "../../../lib/errors";
import { withFullStop, zonedTime } from "../../../lib/format";
import { isObject, parseJson } from "../../../lib/json";
import { readRetryAfter } from "../../../lib/net/out/retry-after";
import type { NewTrouble } from "../../../people/accounts/account-state";
import { readErrorBody, type UpstreamError, writtenOf } from "../upstream-error";
import { isKnownCode, rowOf, statusOf } from "./failure-match";
import type { FailureRow } from "./failure-row";
import { daySeconds } from "./failure-rows";
import { schemaRefusal } from "./refused-schemas";
import { type RefusedValues, refusedValues } from "./refused-values";
import { patternOf, refusedParam } from "./unsupported-params";

export interface Failure {
  /** What to try, as long as no byte has been sent to the client. */
  remedy: NonNullable<FailureRow["remedy"]> | "fit-effort" | "drop-tools" | "drop-param" | "none";
  /** With `fit-effort` and `drop-tools`: what the upstream takes, or rejects. */
  values?: RefusedValues;
  /** With `drop-param`: the pattern of the refused parameter. */
  param?: string;
  /** With `fit-tools`: which schema was refused. */
  schema?: SchemaRefusal;
  /** The new state of the account that was used; undefined if it keeps its state. */
  account?: NewTrouble;
  /** Why the account has that state, without until when: the state has the written form and the time. */
  reason?: Words;
  /** The upstream's code, if it is not known here. */
  newCode?: string;
  /** What the state applies to; the whole account when missing. */
  scope?: FailureRow["scope"];
  /** As in the row. */
  denies?: FailureRow["denies"];
  /** The ids of the models that the upstream says it would have served instead. */
  offered?: string[];
  /** What the client gets if nothing helped. */
  error: ProxyError;
}

/**
 * @param body The beginning of the answer's body: JSON in any of its forms, plain text, HTML or nothing.
 * @param now Milliseconds.
 */
export function readFailure(status: number, headers: Headers, body: string, now: number): Failure {
  const error = readErrorBody(body);
  // Plain text has no code; the header names the limit then.
  if (status === 429 && error.code === "") error.code = limitIn(headers);
  return judge(status, headers, error, now, writtenOf(error, { who, status }));
}

const who = "GitHub Copilot";

function limitIn(headers: Headers): string {
  const name = headers.get("x-ratelimit-exceeded") ?? "";
  return /^[a-z_]{1,64}(?::[a-z_]{1,64})?$/.test(name) ? name : "";
}

/** An error in the body of a 200, before anything was sent to the client: handled like an error answer. */
export function readBrokenReply(error: ReplyFailure, headers: Headers, now: number): Failure {
  return judge(statusOf(error.code), headers, error, now, error.isOurs ? error.message : writtenOf(error, { who }));
}

/** What may be written down of an error within a reply. @param provider Whose reply it is, if not GitHub Copilot's. */
export function writtenOfReply(error: ReplyFailure, provider?: string): string {
  if (error.isOurs) return error.message;
  if (provider !== undefined) return writtenOf(error, { who: provider });
  return sentencesOf(rowOf(statusOf(error.code), error), writtenOf(error, { who })).written;
}

/**
 * The error in the body of a 200 that should have been a stream; undefined if there is none.
 * @param body As {@link readFailure}.
 */
export function upstreamErrorIn(body: string): UpstreamError | undefined {
  const json = parseJson(body);
  return isObject(json) && (json.error || json.type === "error") ? readErrorBody(body) : undefined;
}

/** @param written What may be written down of the error by itself. */
function judge(status: number, headers: Headers, upstream: UpstreamError, now: number, written: string): Failure {
  const row = rowOf(status, upstream);
  const refused = row || status !== 400 ? undefined : refusedParam(upstream);
  const values = row || status !== 400 ? {} : refusedValues(upstream);
  const param = refused === undefined ? undefined : patternOf(refused);
  const schema = status === 400 && param === undefined ? schemaRefusal(upstream) : undefined;
  const retryAfter = readRetryAfter(headers, now) ?? (waitStatuses.has(status) ? waitIn(upstream.message) : undefined);
  const maxWait = row?.maxWait ?? daySeconds;
  const wait = retryAfter === undefined ? undefined : Math.min(retryAfter, maxWait);
  const until = wait === undefined ? undefined : now + wait * 1000;
  const told = upstream.message || written;
  const reason = sentencesOf(row, written, told);
  const sentence = sentencesOf(row, written, told, until === undefined ? "" : ` until ${zonedTime(until, now)}`);
  const error = new ProxyError(
    row?.kind ?? kindOf(status),
    inBoth(sentence, (words) => joinSentences(words, row?.hint)),
    {
      status: row?.clientStatus ?? status,
      code: row?.clientCode ?? (upstream.code || undefined),
      param: upstream.param,
      headers: wait === undefined ? {} : retryHeaders(wait),
    },
  );
  return {
    remedy: row?.remedy ?? remedyFor(values, param, row ? undefined : schema),
    values,
    param,
    schema,
    account: row && troubleOf(row, until, reason.written, wait !== retryAfter),
    reason,
    newCode: upstream.code === "" || isKnownCode(upstream.code) ? undefined : upstream.code,
    scope: row?.scope,
    denies: row?.denies,
    offered: row?.denies === "model" ? offeredIn(upstream.message) : undefined,
    error,
  };
}

function remedyFor(
  { efforts, tools }: RefusedValues,
  param: string | undefined,
  schema: SchemaRefusal | undefined,
): Failure["remedy"] {
  if (efforts) return "fit-effort";
  if (tools) return "drop-tools";
  if (param !== undefined) return "drop-param";
  return schema ? "fit-tools" : "none";
}

/** An error with what its row says of it. @param end Until when it lasts. */
function sentencesOf(row: FailureRow | undefined, written: string, told = written, end = ""): Words {
  const sentence = row?.sentence?.replace("{until}", end);
  return { told: joinSentences(told, sentence), written: joinSentences(written, sentence ?? row?.meaning) };
}

/** @param isLate Whether the upstream stated a later end than is plausible. */
function troubleOf(
  { state: name, scope, suspended, untilRaised }: FailureRow,
  until: number | undefined,
  reason: string,
  isLate: boolean,
): NewTrouble | undefined {
  if (name === "cooling") return { name, until, reason, premiumOnly: scope === "premium", doubtful: isLate };
  if (name === "exhausted") return { name, until, reason, untilRaised };
  // A person may settle it at any time, so that it is tried again soon, whatever the answer says.
  return name && { name, reason, suspended };
}

/** The upstream's message and our sentences, with a full stop between them. */
function joinSentences(message: string, ...ours: (string | undefined)[]): string {
  const sentences = ours.filter((sentence) => sentence !== undefined && sentence !== "");
  if (sentences.length === 0) return message;
  return [withFullStop(message), ...sentences].join(" ");
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

/** Statuses whose message may say when to try again. */
const waitStatuses: ReadonlySet<number> = new Set([402, 403, 429, 503]);

const waitWords =
  /\b(?:retry|try again)(?: after| in)((?: ?(?:and )?\d{1,9}(?:\.\d{1,9})? ?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z]),?){1,4})/i;

/** Seconds from words such as `Please retry after 2733 seconds.` or `try again in 1h 30m`; undefined if there are none. */
function waitIn(message: string): number | undefined {
  const [, stated] = waitWords.exec(message.slice(0, 2000)) ?? [];
  if (stated === undefined) return undefined;
  const parts = stated.matchAll(/(\d{1,9}(?:\.\d{1,9})?) ?([a-z]+)/gi);
  let sum = 0;
  for (const [, amount, unit = ""] of parts) sum += Number(amount) * secondsOf(unit.toLowerCase());
  return Math.ceil(sum);
}

function secondsOf(unit: string): number {
  if (unit === "ms" || unit.startsWith("milli")) return 0.001;
  return { s: 1, m: 60, h: 3600, d: daySeconds }[unit[0]!]!;
}

/** The ids in `Available models: [a b c]`. */
function offeredIn(message: string): string[] | undefined {
  const [, listed] = /Available models: \[([^\]]{1,8000})\]/i.exec(message) ?? [];
  return listed?.split(/[\s,]+/).filter((id) => /^[\w.:/-]{1,100}$/.test(id));
}
