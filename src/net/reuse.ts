/**
 * Whether a call went out on a connection that was kept from an earlier one. Bun's `fetch` does not say; but it looks up
 * the name of the host (or of the proxy on the way) for each new connection and for no kept one, and counts its
 * look-ups (`dns.getCacheStats()`, bun.com/docs/runtime/networking/dns). An address needs no look-up, and somebody else's
 * at the same time may have been ours: then it is not known, which is as good as no.
 */
import { isIP } from "node:net";
import { dns } from "bun";
import { proxyFor } from "./proxy";

/** Names of hosts whose new connections were seen to be counted; their connections may have been kept since. */
const counted = new Set<string>();

export interface ConnectionWatch {
  /** The call was answered. */
  answered(): void;
  /** The call has surely gone out on a kept connection. */
  wasKept(): boolean;
}

/** To be begun right before the call. */
export function watchConnection(url: string): ConnectionWatch {
  const before = lookups();
  return {
    answered() {
      if (lookups() > before) counted.add(lookedUp(url));
    },
    wasKept() {
      const name = lookedUp(url);
      return isIP(name) === 0 && counted.has(name) && lookups() === before;
    },
  };
}

/** The name that a new connection for this address begins with. */
const lookedUp = (url: string): string => proxyFor(url)?.host ?? new URL(url).hostname.replace(/^\[|\]$/g, "");

const lookups = (): number => dns.getCacheStats().totalCount;
