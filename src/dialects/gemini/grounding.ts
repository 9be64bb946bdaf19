/** `groundingMetadata`: the searches that ran for a reply, the pages they found, and which text refers to which page. */
import type { Conversation, JsonObject } from "../hub/conversation";
import type { Block } from "../hub/reply";
import type { Citation } from "../hub/server-tools";

export interface Grounding {
  /** A block has begun. */
  block(block: Block): void;
  /** A text has ended. @param text All of it. */
  text(text: string, citations: readonly Citation[]): void;
  /** Undefined if nothing was searched for. */
  metadata(): JsonObject | undefined;
}

/** Undefined for a request without such a tool. */
export function groundingFor({ tools }: Conversation): Grounding | undefined {
  if (!tools.some((tool) => tool.kind === "foreign" && tool.server?.tool === "web-search")) return undefined;
  const queries: string[] = [];
  const pages: { url: string; title: string }[] = [];
  const supports: JsonObject[] = [];
  /** UTF-8 bytes of the texts so far: Google counts in bytes. */
  let written = 0;

  const indexOf = (url: string, title: string): number => {
    const known = pages.findIndex((page) => page.url === url);
    // A search of OpenAI's gives addresses only; the titles come with the citations.
    if (pages[known]?.title === url) pages[known].title = title;
    return known === -1 ? pages.push({ url, title }) - 1 : known;
  };
  return {
    block(block) {
      if (block.kind === "server-call" && block.tool === "web-search" && typeof block.input.query === "string")
        queries.push(block.input.query);
      if (block.kind === "server-result" && block.output.kind === "pages")
        for (const { url, title } of block.output.pages) indexOf(url, title);
    },
    text(text, citations) {
      const bytesTo = (end: number) => written + Buffer.byteLength(text.slice(0, end));
      for (const { url, title, start, end } of citations)
        supports.push({
          segment: { startIndex: bytesTo(start), endIndex: bytesTo(end), text: text.slice(start, end) },
          groundingChunkIndices: [indexOf(url, title)],
        });
      written = bytesTo(text.length);
    },
    metadata() {
      if (queries.length === 0 && pages.length === 0) return undefined;
      return {
        webSearchQueries: queries,
        groundingChunks: pages.map(({ url, title }) => ({ web: { uri: url, title } })),
        groundingSupports: supports,
      };
    },
  };
}
