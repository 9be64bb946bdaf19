/** Shapes an error for the client, so that the client retries where that helps and shows the message where it does not. */
import { sleepsThroughRests } from "../clients/agent-names";
import type { ClientDialect } from "../dialects/hub/conversation";
import { againOf, type ErrorKind, ProxyError } from "../errors";

/**
 * The status at which the clients of a dialect show our message after one request. Measured by test/clients/refused.ts;
 * test/clients/README.md has the table. Codex shows the message at once only with 400; with 403, 404 and 424 it retries
 * six times. Claude Code does so with 424 (with 400 it retries six times with a smaller request, with 403 it blames the
 * sign-in, with 404 the model). opencode shows all four at once. Gemini CLI retries 429, 499 and 5xx, and takes 404 for an
 * unknown model; 400 is also Google's status for FAILED_PRECONDITION.
 */
const shownAtOnce: Record<ClientDialect, number> = { messages: 424, responses: 400, chat: 424, gemini: 400 };

/** Faults of the request or its sender. The status is the one that the dialects' own services use. */
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

/** Codes of the same kinds that are not the request's fault: a person must change something at GitHub first. */
const accountFaults: ReadonlySet<string> = new Set([
  "account_suspended",
  "model_auto_only",
  "model_not_allowed",
  "model_not_available",
  "model_not_enabled",
]);

/** Statuses that the dialect's clients retry, or replace by a message of their own. */
const hidden: Record<ClientDialect, ReadonlySet<number>> = {
  messages: new Set([404]),
  responses: new Set([403, 404]),
  chat: new Set(),
  gemini: new Set([404]),
};

/**
 * An error that waiting cannot solve gets `x-should-retry: false`, and a status that clients show at once instead of one
 * that they retry (429, 5xx). So does a long `retry-after` for clients that would silently wait for all of it; other
 * clients get 429 and `retry-after`. An error that a retry may soon solve stays as it is. Idempotent.
 */
export function errorForClient(error: ProxyError, dialect: ClientDialect, userAgent: string | null): ProxyError {
  const again = againOf(error);
  if (again === "soon") return error;
  const { code = "" } = error.details;
  const keepsStatus = requestFaults.has(error.kind) && !(accountFaults.has(code) && hidden[dialect].has(error.status));
  const { "retry-after": retryAfter, ...others } = error.details.headers ?? {};
  const headers = { ...others, "x-should-retry": "false" };
  if (keepsStatus || (again === "later" && !sleepsThroughRests(userAgent)))
    return new ProxyError(error.kind, error.message, {
      ...error.details,
      headers: retryAfter === undefined ? headers : { ...headers, "retry-after": retryAfter },
    });
  return new ProxyError("unable", error.message, { ...error.details, status: shownAtOnce[dialect], headers });
}

/** The reason of `controller` when the client hung up. No client receives it. */
export const clientClosed = new ProxyError("upstream", "The client hung up before the reply was complete.", {
  status: 499,
  code: "client_closed",
});
