/** Shapes an error for the client, so that the client retries where that helps and shows the message where it does not. */
import { sleepsThroughRests } from "../../clients/agent-names";
import { codecs } from "../../dialects/codecs";
import type { ClientDialect } from "../../dialects/hub/conversation";
import { againOf, type ErrorKind, ProxyError } from "../../lib/errors";

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

/**
 * An error that waiting cannot solve gets `x-should-retry: false`, and a status that clients show at once instead of one
 * that they retry (429, 5xx). So does a long `retry-after` for clients that would silently wait for all of it; other
 * clients get 429 and `retry-after`. An error that a retry may soon solve stays as it is, and so does a
 * provider's own. Idempotent.
 */
export function errorForClient(error: ProxyError, dialect: ClientDialect, userAgent: string | null): ProxyError {
  const { hiddenStatuses, shownAtOnce } = codecs[dialect].facts;
  const again = againOf(error);
  if (again === "soon" || error.details.body !== undefined) return error;
  const { code = "" } = error.details;
  const keepsStatus = requestFaults.has(error.kind) && !(accountFaults.has(code) && hiddenStatuses.has(error.status));
  const { "retry-after": retryAfter, ...others } = error.details.headers ?? {};
  const headers = { ...others, "x-should-retry": "false" };
  if (keepsStatus || (again === "later" && !sleepsThroughRests(userAgent)))
    return new ProxyError(error.kind, error.words, {
      ...error.details,
      headers: retryAfter === undefined ? headers : { ...headers, "retry-after": retryAfter },
    });
  return new ProxyError("unable", error.words, { ...error.details, status: shownAtOnce, headers });
}

/** The reason of `controller` when the client hung up. No client receives it. */
export const clientClosed = new ProxyError("upstream", "The client hung up before the reply was complete.", {
  status: 499,
  code: "client_closed",
});
