/** Finds the row of an error: by its code, else by its message, else by its status. */

import { badRequestCode, forbiddenCode } from "../../../dialects/hub/error-codes";
import { suspensionWords } from "../../../people/accounts/suspension";
import type { UpstreamError } from "../upstream-error";
import type { FailureRow } from "./failure-row";
import { rows } from "./failure-rows";

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

/**
 * The status for an error that arrives in the body of a 200. Types are those of Anthropic's documentation of errors,
 * codes those of Copilot and of OpenAI.
 */
export const statusOf = (code: string): number => knownStatusOf(code) ?? 502;

const knownStatusOf = (code: string): number | undefined =>
  rows.find((row) => row.stream !== undefined && row.code!.test(code))?.stream ??
  statuses.find(([pattern]) => pattern.test(code))?.[1];

/** Codes that have no row above, or share one with others. No code matches two of them. */
export const statuses: readonly [code: RegExp, status: number][] = [
  [/^overloaded/, 529],
  [/^billing_/, 402],
  [forbiddenCode, 422],
  [badRequestCode, 400],
  [/^(?:authentication_error|unauthorized)/, 401],
  [/^(?:permission|forbidden)/, 403],
  [/^not_found/, 404],
  [/^user_request_timeout/, 408],
  [/^request_too_large/, 413],
  [/^timeout/, 504],
  [/^(?:api_error|server_error|internal_(?:server_)?error)/, 500],
  [/^(?:service_unavailable|upstream_provider_rate_limit)/, 503],
];

const permissionWords = /permission|forbidden|unauthorized|authentication/i;

/**
 * Whether an error in a stream, which has no status, says that GitHub has suspended the account. A code that nobody knows does
 * if it sounds like that: going on after a suspension would evade it.
 */
export function isSuspensionEvent(code: string, message: string): boolean {
  const known = knownStatusOf(code);
  if (known === undefined && suspensionWords.test(code)) return true;
  const status = known ?? (permissionWords.test(code) ? 403 : 502);
  return rowOf(status, { code, message })?.suspended === true;
}

/** Codes and types of errors that need no row of their own; from Copilot's clients and the vendors' documentation. */
const otherCodes =
  /^(?:decoder_error|failed_precondition|invalid_function_parameters|json_|model_(?:not_found|pending)|not_supported|payload_too_large|tool_|unprocessable|upstream_)/;

/** Whether an upstream's error code or type has been seen before. */
export const isKnownCode = (code: string): boolean =>
  otherCodes.test(code) ||
  statuses.some(([pattern]) => pattern.test(code)) ||
  rows.some((row) => row.code?.test(code) ?? false);
