/**
 * Whether a call went out on a reused connection. Bun's `fetch` does not say. But it resolves the name of the host (or of
 * the proxy) for each new connection and never for a reused one, and counts its look-ups (`dns.getCacheStats()`,
 * bun.com/docs/runtime/networking/dns). An IP address needs no look-up, and another call may have caused one at the same
 * time: then the answer is unknown, which counts as no.
 */
import { dns } from "bun";
import { proxyFor } from "./proxy";

/** Host names for which a look-up was counted before; their connections may have been reused since. */
const counted = new Set<string>();

/** How many look-ups Bun has made. Taken right before a call, it tells afterwards whether the call made one. */
export const countLookups = (): number => dns.getCacheStats().totalCount;

/** A call to this address was answered, and a look-up was counted meanwhile. */
export function noteLookup(url: string): void {
  counted.add(lookedUp(url));
}

/**
 * Whether a call certainly went out on a reused connection.
 * @param lookups {@link countLookups} right before it.
 */
export function wasReused(url: string, lookups: number): boolean {
  const name = lookedUp(url);
  const { isIP } = process.getBuiltinModule("node:net");
  return isIP(name) === 0 && counted.has(name) && countLookups() === lookups;
}

/** The name that is resolved for a new connection to this address. */
const lookedUp = (url: string): string => proxyFor(url)?.host ?? new URL(url).hostname.replace(/^\[|\]$/g, "");
