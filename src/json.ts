/** Reading JSON that somebody else wrote. */
import { ProxyError } from "./errors";

/** Neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a table holds under a key that came from outside: `constructor` is no entry. */
export function entryOf<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** The JSON a text is; undefined when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * What arrived is not shown: it may be a portal's page.
 * @param what For the sentence: `GitHub Copilot's answer`.
 */
export const notJson = (what: string): ProxyError =>
  new ProxyError("upstream", `${what} is not JSON: is a proxy or a portal in the way?`);
