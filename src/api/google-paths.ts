/**
 * Google's paths end in a model and a method: `/v1beta/models/:model:generateContent`. The model may have slashes, so it is
 * no parameter of the router.
 */
import type { EndpointDocument } from "../endpoint";
import { ProxyError } from "../errors";
import { methodNotAllowed, methodsOf } from "../matcher";

const form = /^(.+)\/:model(?::(\w+))?$/;

/** The path under which the router has an endpoint. */
export const routerPath = (path: string): string => path.replace(form, "$1/*");

/**
 * The endpoint for what the router found, and the model.
 * @param rows Those of Google's models.
 * @param method The endpoint's; GET for HEAD too.
 * @param rest What follows the router's path, percent-encoded.
 * @throws ProxyError `not_found` for an unknown method of the model, `method_not_allowed` with those that are served,
 *   `invalid_request` for what does not decode.
 */
export function findGoogleRow<Row extends EndpointDocument>(rows: readonly Row[], method: string, rest: string) {
  const name = decoded(rest);
  const { served, model, verb } = rowsOf(rows, name);
  const row = served.find((each) => each.method === method);
  if (row) return { row, model };
  if (verb !== undefined && !verbsOf(rows).includes(verb))
    throw new ProxyError(
      "not_found",
      `There is no method \`${verb.slice(0, 60)}\` of a model here; the methods are ${verbsOf(rows).join(", ")}.`,
    );
  throw methodNotAllowed(method, methodsOf(served));
}

/** The endpoints for a decoded name. What follows the last colon is a method of the model, if there is one of that name. */
function rowsOf<Row extends EndpointDocument>(rows: readonly Row[], name: string) {
  const end = name.lastIndexOf(":");
  const verb = end > 0 ? name.slice(end + 1) : undefined;
  const found = verb === undefined ? [] : rows.filter(({ path }) => verbOf(path) === verb);
  if (found.length > 0) return { served: found, model: name.slice(0, end), verb };
  return { served: rows.filter(({ path }) => verbOf(path) === undefined), model: name, verb };
}

const verbOf = (path: string): string | undefined => form.exec(path)?.[2];

const verbsOf = (rows: readonly EndpointDocument[]): string[] => rows.flatMap(({ path }) => verbOf(path) ?? []);

/** Where another list has a model's name too: only Google's clients mean its methods. @throws as {@link findGoogleRow} */
export function refuseGoogleMethod(rows: readonly EndpointDocument[], method: string, name: string): void {
  const { served, verb } = rowsOf(rows, name);
  if (verb === undefined || !verbsOf(rows).includes(verb) || served.some((row) => row.method === method)) return;
  throw methodNotAllowed(method, methodsOf(served));
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
