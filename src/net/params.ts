/** The parameters of a route's path: `/v1/models/:id`. */
import { ProxyError } from "../errors";

/**
 * The decoded parameters. Elysia gives null for one whose percent-encoding is not UTF-8.
 * @throws ProxyError 400 that names the parameter.
 */
export function decodedParams(params: Record<string, string | null> = {}): Record<string, string> {
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
