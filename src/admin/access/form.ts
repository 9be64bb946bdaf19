/** Reads the forms that the admin pages submit. */
import { ProxyError } from "../../lib/errors";
import { limitBytes } from "../../lib/net/in/byte-limit";

/** Bytes; a config with a thousand keys is far smaller. */
const maxBytes = 1024 * 1024;

/** @throws ProxyError `unsupported_media`, `too_large`. */
export async function readForm(request: Request): Promise<URLSearchParams> {
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(request.headers.get("content-type") ?? ""))
    throw new ProxyError("unsupported_media", "Forms must be sent as application/x-www-form-urlencoded.");
  if (Number(request.headers.get("content-length")) > maxBytes) throw tooLarge();
  const bytes = Buffer.concat(await Array.fromAsync(limitBytes(request.body ?? [], maxBytes, tooLarge)));
  return new URLSearchParams(bytes.toString());
}

const tooLarge = () => new ProxyError("too_large", "The form is larger than 1 MB.");
