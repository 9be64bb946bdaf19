/** `groundingMetadata`: the searches that ran for a reply, the pages they found, and which text refers to which page. */
import type { Conversation, JsonObject, Tool } from "../hub/conversation";
import type { Block } from "../hub/reply";
import type { Citation } from "../hub/server-tools";

export class Grounding {
  readonly #queries: string[] = [];
  readonly #pages: { url: string; title: string }[] = [];
  readonly #supports: JsonObject[] = [];
  /** UTF-8 bytes of the texts so far: Google counts in bytes. */
  #written = 0;

  /** Undefined for a request without such a tool. */
  static for({ tools }: Conversation): Grounding | undefined {
    const isSearch = (tool: Tool) => tool.kind === "foreign" && tool.server?.tool === "web-search";
    return tools.some(isSearch) ? new Grounding() : undefined;
  }

  /** A block has begun. */
  block(block: Block): void {
    if (block.kind === "server-call" && block.tool === "web-search" && typeof block.input.query === "string")
      this.#queries.push(block.input.query);
    if (block.kind === "server-result" && block.output.kind === "pages")
      for (const { url, title } of block.output.pages) this.#indexOf(url, title);
  }

  /** A text has ended. @param text All of it. */
  text(text: string, citations: readonly Citation[]): void {
    const bytesTo = (end: number) => this.#written + Buffer.byteLength(text.slice(0, end));
    for (const { url, title, start, end } of citations)
      this.#supports.push({
        segment: { startIndex: bytesTo(start), endIndex: bytesTo(end), text: text.slice(start, end) },
        groundingChunkIndices: [this.#indexOf(url, title)],
      });
    this.#written = bytesTo(text.length);
  }

  /** Undefined if nothing was searched for. */
  metadata(): JsonObject | undefined {
    if (this.#queries.length === 0 && this.#pages.length === 0) return undefined;
    return {
      webSearchQueries: this.#queries,
      groundingChunks: this.#pages.map(({ url, title }) => ({ web: { uri: url, title } })),
      groundingSupports: this.#supports,
    };
  }

  #indexOf(url: string, title: string): number {
    const known = this.#pages.find((page) => page.url === url);
    if (!known) return this.#pages.push({ url, title }) - 1;
    // A search of OpenAI's gives addresses only; the titles come with the citations.
    if (known.title === url) known.title = title;
    return this.#pages.indexOf(known);
  }
}
