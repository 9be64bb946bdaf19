/** The client's address behind reverse proxies that the owner trusts. It is used for limits and display, never to trust a caller more. */
import { ProxyError } from "../../errors";
import { type AddressRange, bareAddress, familyOf, inRanges, isLoopbackAddress, rangeOf } from "../address";

export interface TrustedProxies {
  /**
   * The nearest address that is not a trusted proxy's: of the socket, or of `x-forwarded-for`, to which each proxy appends the
   * address that it was called from. What a client wrote there itself stands before that. Null if a proxy on this machine names
   * nobody: its callers must not be taken for the owner, who calls from here.
   * @param peer The socket's address.
   */
  clientOf(peer: string | null, headers: Headers): string | null;
  /** Whether a socket's address is a trusted proxy's. */
  trusts(peer: string | null): boolean;
}

/**
 * @param ranges Addresses, or ranges such as `10.0.0.0/8`.
 * @throws ProxyError `invalid_request` for a text that is neither.
 */
export function openTrustedProxies(ranges: readonly string[]): TrustedProxies {
  const isTrusted = inRanges(ranges.map(readRange));
  return {
    trusts: (peer) => peer !== null && isTrusted(bareAddress(peer)),
    clientOf(peer, headers) {
      let client = peer === null ? null : bareAddress(peer);
      const passed = headers.get("x-forwarded-for")?.split(",") ?? [];
      while (client !== null && isTrusted(client) && passed.length > 0) {
        const before = bareAddress(passed.pop()!.trim());
        if (!familyOf(before)) break;
        client = before;
      }
      return isLoopbackAddress(client) && isTrusted(client!) ? null : client;
    },
  };
}

function readRange(text: string): AddressRange {
  const range = rangeOf(text);
  if (range) return range;
  throw new ProxyError("invalid_request", `${text.slice(0, 60)} is neither an address nor a range such as 10.0.0.0/8.`);
}
