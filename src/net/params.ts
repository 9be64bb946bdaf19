/** The parts of a path that name something: `/v1/models/:id`. */
import { ProxyError } from "../errors";

/**
 * The parameters of a route, as text. Elysia gives null for one whose percent-encoding is not UTF-8.
 * @throws ProxyError 400 that names the parameter.
 */
export function decodedParams(params: Record<string, string | null> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => {
      if (value !== null) return [name, value];
      throw new ProxyError(
        "invalid_request",
        `The \`${name}\` in this path does not decode: what follows each % must be two hexadecimal digits, and all of it UTF-8. Encode it as encodeURIComponent does.`,
        { param: name },
      );
    }),
  );
}
