/** The client's address behind reverse proxies that the owner trusts. It is used for limits and display, never to trust a caller more. */
import { BlockList, isIPv4, isIPv6 } from "node:net";
import { ProxyError } from "../errors";
import { isLoopbackAddress } from "./guard";

export interface TrustedProxies {
  /**
   * The nearest address that is not a trusted proxy's: of the socket, or of `x-forwarded-for`, to which each proxy appends the
   * address that it was called from. What a client wrote there itself stands before that. Null if a proxy on this machine names
   * nobody: its callers must not be taken for the owner, who calls from here.
   * @param peer The socket's address.
   */
  clientOf(peer: string | null, headers: Headers): string | null;
}

/**
 * @param ranges Addresses, or ranges such as `10.0.0.0/8`.
 * @throws ProxyError `invalid_request` for a text that is neither.
 */
export function openTrustedProxies(ranges: readonly string[]): TrustedProxies {
  const trusted = new BlockList();
  for (const range of ranges) addRange(trusted, range);
  const isTrusted = (address: string) => trusted.check(address, isIPv4(address) ? "ipv4" : "ipv6");
  return {
    clientOf(peer, headers) {
      let client = peer === null ? null : bareAddress(peer);
      const passed = headers.get("x-forwarded-for")?.split(",") ?? [];
      while (client !== null && isTrusted(client) && passed.length > 0) {
        const before = bareAddress(passed.pop()!.trim());
        if (!isIPv4(before) && !isIPv6(before)) break;
        client = before;
      }
      return isLoopbackAddress(client) && isTrusted(client!) ? null : client;
    },
  };
}

function addRange(trusted: BlockList, range: string): void {
  const [address = "", prefix, more] = range.split("/");
  const family = isIPv4(address) ? "ipv4" : isIPv6(address) ? "ipv6" : undefined;
  const bits = family === "ipv4" ? 32 : 128;
  if (!family || more !== undefined || (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)))
    throw new ProxyError(
      "invalid_request",
      `${range.slice(0, 60)} is neither an address nor a range such as 10.0.0.0/8.`,
    );
  trusted.addSubnet(address, prefix === undefined ? bits : Number(prefix), family);
}

/** Without brackets and port, and an IPv4 address in its own form. */
const bareAddress = (address: string): string =>
  address
    .replace(/^\[(.*)\](?::\d+)?$/, "$1")
    .replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1")
    .replace(/^::ffff:(?=\d+\.)/i, "");
