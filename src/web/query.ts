/**
 * The texts of an address's query as they were sent. For a Standard Schema, Elysia 1.4.30 makes a list of a text with a comma,
 * and parses a text that looks like JSON: names of models and accounts may have both. So schemas are given these texts.
 */

/** A client's query: the first of equal parameters counts, and an empty one is an empty text. */
export function clientQuery(url: string): Record<string, string> {
  const sent = new URL(url).searchParams;
  return Object.fromEntries([...new Set(sent.keys())].map((name) => [name, sent.get(name)!]));
}
