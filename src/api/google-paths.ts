/**
 * Google's paths end in a model and a method: `/v1beta/models/:model:generateContent`. The model may have slashes, so it is
 * no parameter of the router.
 */
import type { EndpointDocument } from "../endpoint";
import { ProxyError } from "../errors";

const form = /^(.+)\/:model(?::(\w+))?$/;

/** The path under which the router has an endpoint. */
export const routerPath = (path: string): string => path.replace(form, "$1/*");

/**
 * The endpoint for what the router found, and the model.
 * @param rows Those of the router's path and the request's method.
 * @param rest What follows the router's path, percent-encoded.
 * @throws ProxyError `not_found` for an unknown method of the model, `invalid_request` for what does not decode.
 */
export function findGoogleRow<Row extends EndpointDocument>(rows: readonly Row[], rest: string) {
  const name = decoded(rest);
  const end = name.lastIndexOf(":");
  for (const row of rows) {
    const verb = form.exec(row.path)?.[2];
    if (verb === undefined) return { row, model: name };
    if (name.slice(end + 1) === verb && end > 0) return { row, model: name.slice(0, end) };
  }
  const verbs = rows.map(({ path }) => form.exec(path)?.[2] ?? "").join(", ");
  throw new ProxyError(
    "not_found",
    `There is no method \`${name.slice(end + 1).slice(0, 60)}\` of a model here; the methods are ${verbs}.`,
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ProxyError(
      "invalid_request",
      "The model in this path does not decode: it is not percent-encoded UTF-8.",
      {
        param: "model",
      },
    );
  }
}

/** Whether a request comes from one of Google's packages, where the path does not say it. */
export const isGoogleClient = ({ headers }: Request): boolean =>
  headers.has("x-goog-api-client") || headers.has("x-goog-api-key");

/** @throws ProxyError `invalid_request`: addresses are written to logs, by proxies too. */
export function refuseKeyInAddress(url: string): void {
  if (!new URL(url).searchParams.has("key")) return;
  throw new ProxyError(
    "invalid_request",
    "A key in the address (its parameter `key`) is not accepted, because addresses end up in logs: send it as the header `x-goog-api-key`.",
    { param: "key", code: "key_in_address" },
  );
}
