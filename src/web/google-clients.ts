/** The marks of Google's packages in a request. */
import { ProxyError } from "../lib/errors";

/** Whether a request comes from one of them, where the path does not say it. */
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
