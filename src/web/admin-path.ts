/** The paths and error format of the admin API, for the server before the admin code is loaded. */
import type { ErrorKind, ProxyError } from "../lib/errors";

/** Whether a path belongs to the admin API, whose errors have their own format. */
export const isAdminApi = (path: string) => /^\/api\/admin(?:\/|$)/.test(path);

/** Whether a path belongs to the admin API or a page. A path with `/v1/` is treated as a provider's, whose clients expect their own error format. */
export const isAdmin = (path: string) => /^(?:\/api)?\/admin(?!\/v1\/)(?:\/|$)/.test(path);

/** An error in the admin API's shape. */
export function encodeAdminError({ kind, message, details }: ProxyError) {
  return { error: { type: details.code ?? types[kind] ?? kind, message, param: details.param } };
}

const types: Partial<Record<ErrorKind, string>> = { authentication: "unauthorized", permission: "forbidden" };
