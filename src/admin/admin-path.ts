/** What the server must know of the admin wing before it is loaded: its paths, and the form of its errors. */
import type { ErrorKind, ProxyError } from "../errors";

/** Whether a path is the admin API's, so that its errors and refusals are. */
export const isAdminPath = (path: string) => /^\/api\/admin(?:\/|$)/.test(path);

/** Whether a path is the admin API's or a page's. One with `/v1/` looks like a provider's, and clients expect their errors there. */
export const isAdminWing = (path: string) => /^(?:\/api)?\/admin(?!\/v1\/)(?:\/|$)/.test(path);

/** An error in the admin API's shape. */
export function encodeAdminError({ kind, message, details }: ProxyError) {
  return { error: { type: details.code ?? types[kind] ?? kind, message, param: details.param } };
}

const types: Partial<Record<ErrorKind, string>> = { authentication: "unauthorized", permission: "forbidden" };
