/** A failure as a client is told of it, so that it repeats the request where that helps and shows the sentence where not. */
import { sleepsThroughRests } from "../clients/agent-names";
import type { Dialect } from "../dialects/hub/conversation";
import { againOf, type ErrorKind, ProxyError } from "../errors";

/**
 * The status that this dialect's clients show at once, with our sentence and after one request. Measured by
 * test/clients/refused.ts, with the table in test/clients/README.md: of 400, 403, 404 and 424 only 400 makes Codex
 * speak before it has tried six times, and 424 makes Claude Code ask once and add no word of its own (at 400 it tries
 * six times without what it thinks was refused; at 403 it blames the sign-in; at 404 the model). opencode shows all four.
 */
const shownAtOnce: Record<Dialect, number> = { messages: 424, responses: 400, chat: 424 };

/** The request itself is at fault, or its sender: the status says which, as the dialects' own services say it. */
const requestFaults: ReadonlySet<ErrorKind> = new Set([
  "invalid_request",
  "authentication",
  "permission",
  "not_found",
  "method_not_allowed",
  "conflict",
  "too_large",
  "unsupported_media",
  "upgrade_required",
]);

/** Not the request's fault, though their kind says so: a person must act elsewhere first. */
const accountFaults: ReadonlySet<string> = new Set(["account_suspended", "model_not_enabled"]);

/** Statuses of those that the dialect's clients repeat, or show in words of their own. */
const hidden: Record<Dialect, ReadonlySet<number>> = {
  messages: new Set([404]),
  responses: new Set([403, 404]),
  chat: new Set(),
};

/**
 * What waiting cannot mend carries `x-should-retry: false`, and leaves with a status that clients show at once instead
 * of one they repeat (429, 5xx). So does a long rest towards clients that would sleep through it; the others get 429
 * and `retry-after`. What may soon be served is left as it is. Telling twice changes nothing.
 */
export function errorForClient(error: ProxyError, dialect: Dialect, userAgent: string | null): ProxyError {
  const again = againOf(error);
  if (again === "soon") return error;
  const { code = "" } = error.details;
  const shown = requestFaults.has(error.kind) && !(accountFaults.has(code) && hidden[dialect].has(error.status));
  const { "retry-after": rest, ...others } = error.details.headers ?? {};
  const headers = { ...others, "x-should-retry": "false" };
  if (shown || (again === "later" && !sleepsThroughRests(userAgent)))
    return new ProxyError(error.kind, error.message, {
      ...error.details,
      headers: rest === undefined ? headers : { ...headers, "retry-after": rest },
    });
  return new ProxyError("unable", error.message, { ...error.details, status: shownAtOnce[dialect], headers });
}
