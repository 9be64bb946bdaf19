/** The web pages that a text of a reply refers to. */
import type { Citation, WebPage } from "../../dialects/hub/server-tools";

/** The pages that a text refers to: each address of one of them that it contains, with the link around it. */
export function citationsIn(text: string, pages: readonly WebPage[]): Citation[] {
  const found = new Map<number, Citation>();
  for (const { url, title, text: quote = "" } of pages)
    for (let at = text.indexOf(url); at !== -1; at = text.indexOf(url, at + url.length)) {
      // One address may be the beginning of another.
      if (/^(?:[\w/%=&#~-]|[.?]\w)/.test(text.slice(at + url.length, at + url.length + 2))) continue;
      const start = startOfLink(text, at) ?? at;
      const end = at + url.length + (start < at && text[at + url.length] === ")" ? 1 : 0);
      if (!found.has(start)) found.set(start, { url, title, start, end, quote });
    }
  return [...found.values()].sort((one, other) => one.start - other.start);
}

/** Characters of a link's words, at most. */
const longestWords = 300;

/** Where the Markdown link begins whose address begins at `at`; undefined if it is in none. */
function startOfLink(text: string, at: number): number | undefined {
  const before = text.slice(Math.max(0, at - longestWords), at);
  if (!before.endsWith("](")) return undefined;
  const words = before.slice(0, -2);
  const start = words.indexOf("[", Math.max(words.lastIndexOf("]"), words.lastIndexOf("\n")) + 1);
  return start === -1 ? undefined : at - before.length + start;
}
