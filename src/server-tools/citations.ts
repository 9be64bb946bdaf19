/** The web pages that a text of a reply refers to. */
import type { Part, Turn } from "../dialects/hub/conversation";
import type { Citation, WebDocument, WebPage } from "../dialects/hub/server-tools";

/** The pages that a text refers to: each address of one of them that it contains, with the link around it. */
export function citationsIn(text: string, pages: readonly WebPage[]): Citation[] {
  const found = new Map<number, Citation>();
  for (const { url, title, text: quote = "" } of pages)
    for (let at = text.indexOf(url); at !== -1; at = text.indexOf(url, at + url.length)) {
      // One address may be the beginning of another.
      if (/^(?:[\w/%=&#~-]|[.?]\w)/.test(text.slice(at + url.length, at + url.length + 2))) continue;
      const link = /\[[^\]\n]*\]\($/.exec(text.slice(Math.max(0, at - 300), at))?.[0] ?? "";
      const start = at - link.length;
      const end = at + url.length + (link !== "" && text[at + url.length] === ")" ? 1 : 0);
      if (!found.has(start)) found.set(start, { url, title, start, end, quote });
    }
  return [...found.values()].sort((one, other) => one.start - other.start);
}

/** How many documents these turns hold: Anthropic counts those of the client and the pages that were read alike. */
export function documentsIn(turns: readonly Turn[]): number {
  const count = (parts: readonly Part[]): number =>
    parts.reduce((sum, part) => sum + (isDocument(part) ? 1 : part.kind === "tool-result" ? count(part.parts) : 0), 0);
  return turns.reduce((sum, { parts }) => sum + count(parts), 0);
}

const documentType = "document";

const isDocument = (part: Part): boolean =>
  part.kind === "file" ||
  part.kind === "file-link" ||
  (part.kind === "server-result" && part.output.kind === "document") ||
  (part.kind === "text" && part.extras?.anthropic?.type === documentType) ||
  (part.kind === "foreign" && part.value.type === documentType);

/** What stands in quotation marks of whatever language, and is long enough to be found by its words. */
const quotation = /["“”„«»‟]([^"“”„«»‟]{12,500})["“”«»]/g;
const fewestWords = 3;
/** How many citations one text gets at most. */
const maxQuotations = 20;

/**
 * The words of pages that a text repeats in quotation marks. White space may differ.
 * @param documents Those that were read, with their places among all of the conversation.
 */
export function quotesIn(text: string, documents: readonly (readonly [place: number, WebDocument])[]): Citation[] {
  if (documents.length === 0) return [];
  const quotations = [...text.matchAll(quotation)].flatMap(({ 0: whole, 1: inner = "", index: start }) => {
    // The mark at its end may be the sentence's.
    const words = spaced(inner)
      .trim()
      .replace(/ ?[.,;:!?…]$/, "");
    return words.split(" ", fewestWords).length < fewestWords ? [] : [{ start, end: start + whole.length, words }];
  });
  const pages = documents.map(([place, { text: page }]) => ({ place, page, spaced: spaced(page) }));
  return quotations.slice(0, maxQuotations).flatMap(({ start, end, words }) => {
    const at = pages.findIndex((each) => each.spaced.includes(words));
    const found = pages[at];
    if (!found) return [];
    const passage = passageOf(found.page, found.spaced.indexOf(words), words.length);
    const { url, title } = documents[at]![1];
    const quote = [...found.page].slice(passage.start, passage.end).join("");
    return [{ url, title, start, end, quote, passage: { document: found.place, ...passage } }];
  });
}

const spaced = (text: string): string => text.replace(/\s+/g, " ");

/**
 * The place of a passage in the text, in characters.
 * @param from Its beginning in the same text without extra spaces, in UTF-16 units, like `length`.
 */
function passageOf(text: string, from: number, length: number): { start: number; end: number } {
  let [units, characters, start, wasSpace] = [0, 0, -1, false];
  for (const character of text) {
    const isSpace = /\s/.test(character);
    if (!(isSpace && wasSpace)) {
      if (units === from + length) break;
      if (units === from) start = characters;
      units += isSpace ? 1 : character.length;
    }
    wasSpace = isSpace;
    characters += 1;
  }
  return { start, end: characters };
}
