/**
 * The texts of an address's query as they were sent. For a Standard Schema, Elysia 1.4.30 makes a list of a text with a comma,
 * and parses a text that looks like JSON: names of models and accounts may have both. So schemas are given these texts.
 */

/** A client's query: the first of equal parameters counts, and an empty one is an empty text. */
export function clientQuery(url: string): Record<string, string> {
  const sent = new URL(url).searchParams;
  return Object.fromEntries([...new Set(sent.keys())].map((name) => [name, sent.get(name)!]));
}

/** The query of a form, which sends its empty fields too: an empty text counts as absent. Equal parameters become a list, which no schema takes. */
export function formQuery(url: string): Record<string, string | string[]> {
  if (!url.includes("?")) return {};
  const sent = new URL(url).searchParams;
  const given = [...new Set(sent.keys())].flatMap((name) => {
    const texts = sent.getAll(name).filter((text) => text !== "");
    return texts.length === 0 ? [] : [[name, texts.length === 1 ? texts[0]! : texts] as const];
  });
  return Object.fromEntries(given);
}
