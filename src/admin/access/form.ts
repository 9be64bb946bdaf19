/** Reads the forms that the admin pages submit. */
import { ProxyError } from "../../errors";

/** Bytes; a config with a thousand keys is far smaller. */
const maxBytes = 1024 * 1024;

/** @throws ProxyError `unsupported_media`, `too_large`. */
export async function readForm(request: Request): Promise<URLSearchParams> {
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(request.headers.get("content-type") ?? ""))
    throw new ProxyError("unsupported_media", "Forms must be sent as application/x-www-form-urlencoded.");
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  if (Number(request.headers.get("content-length")) > maxBytes) throw tooLarge();
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString());
}

const tooLarge = () => new ProxyError("too_large", "The form is larger than 1 MB.");
