/** The path of a request, and the parameters in it: `/v1/models/:id`. */
import { ProxyError } from "../../errors";
import { isEmpty } from "../../json";

/**
 * The decoded parameters. Elysia gives null for one whose percent-encoding is not UTF-8.
 * @throws ProxyError 400 that names the parameter.
 */
export function decodedParams(params: Record<string, string | null> | undefined): Record<string, string> {
  if (params === undefined || isEmpty(params)) return {};
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => {
      if (value !== null) return [name, value];
      throw new ProxyError(
        "invalid_request",
        `The \`${name}\` in this path does not decode: each % must be followed by two hexadecimal digits, and the result must be UTF-8. Encode it with encodeURIComponent.`,
        { param: name },
      );
    }),
  );
}

/** The path of a request's address. Empty where a malformed Host has made the address a bare path. */
export function pathOfUrl(url: string): string {
  const start = url.startsWith("http") ? url.indexOf("/", "https://".length) : -1;
  if (start === -1) return "";
  const path = url.slice(start);
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}
