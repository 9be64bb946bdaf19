/**
 * Whether a call went out on a reused connection. Bun's `fetch` does not say. But it resolves the name of the host (or of
 * the proxy) for each new connection and never for a reused one, and counts its look-ups (`dns.getCacheStats()`,
 * bun.com/docs/runtime/networking/dns). An IP address needs no look-up, and another call may have caused one at the same
 * time: then the answer is unknown, which counts as no.
 */
import { isIP } from "node:net";
import { dns } from "bun";
import { proxyFor } from "./proxy";

/** Host names for which a look-up was counted before; their connections may have been reused since. */
const counted = new Set<string>();

export interface ConnectionWatch {
  /** To be called when the response has arrived. */
  answered(): void;
  /** The call certainly went out on a reused connection. */
  wasReused(): boolean;
}

/** To be called right before the call. */
export function watchConnection(url: string): ConnectionWatch {
  const before = lookups();
  return {
    answered() {
      if (lookups() > before) counted.add(lookedUp(url));
    },
    wasReused() {
      const name = lookedUp(url);
      return isIP(name) === 0 && counted.has(name) && lookups() === before;
    },
  };
}

/** The name that is resolved for a new connection to this address. */
const lookedUp = (url: string): string => proxyFor(url)?.host ?? new URL(url).hostname.replace(/^\[|\]$/g, "");

const lookups = (): number => dns.getCacheStats().totalCount;
