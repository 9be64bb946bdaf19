/** Web search that the upstream of the responses dialect runs itself, for a client of another dialect. */
import { isObject } from "../lib/json";
import type { Stage } from "../lib/net/stream/stream";
import type { Conversation, ForeignTool, JsonObject, Tool } from "./hub/conversation";
import { textIn, without } from "./hub/json";
import type { ForeignBlock, ReplyEvent } from "./hub/reply";
import { searches } from "./hub/searches";
import { type Citation, type ServerToolOffer, type ServerToolOutput, serverCallId } from "./hub/server-tools";
import { ChosenTools } from "./hub/tools";
import { nativeSearch, pagesAsked, pagesRead, urlsCited } from "./responses/server-tools";

/** OpenAI's reasoning models do not search with the least effort (its guide "Web search", 2026-11). */
const tooLittleEffort = "minimal";
const { call, tool } = searches["web-search"].responses;
const nativeChoice = { type: tool };

/** Whether the upstream's own search can keep to the wish: it knows host names that are allowed, and where the person is. */
const isSaidNatively = (
  { tool, maxUses, allowedDomains = [], blockedDomains }: ServerToolOffer,
  { reasoning }: Conversation,
): boolean =>
  tool === "web-search" &&
  maxUses === undefined &&
  blockedDomains === undefined &&
  allowedDomains.every((domain) => /^(?:[a-z]+:\/\/)?[^/*]+\/?$/i.test(domain)) &&
  reasoning?.effort !== tooLittleEffort;

/**
 * The request with the upstream's own search in place of the client's.
 * @returns Undefined if it has no search, or a wish that cannot be said.
 */
export function withNativeSearch(conversation: Conversation): Conversation | undefined {
  const searches = conversation.tools.filter(isSearch);
  if (searches.length === 0 || !searches.every(({ server }) => isSaidNatively(server, conversation))) return undefined;
  const [first] = searches;
  const native = nativeSearch(first!.server);
  const tools = conversation.tools.flatMap((tool) => (tool === first ? [native] : isSearch(tool) ? [] : [tool]));
  const { openai = {} } = conversation.extras ?? {};
  const include = Array.isArray(openai.include) ? openai.include : [];
  const isForced = isChosen(conversation, searches);
  return {
    ...conversation,
    tools,
    toolChoice: isForced ? undefined : conversation.toolChoice,
    extras: {
      ...conversation.extras,
      openai: {
        ...openai,
        ...(isForced ? { tool_choice: nativeChoice } : {}),
        include: [...include, pagesAsked],
      },
    },
  };
}

type SearchTool = ForeignTool & { server: ServerToolOffer };

const isSearch = (tool: Tool): tool is SearchTool => tool.kind === "foreign" && tool.server?.tool === "web-search";

function isChosen({ toolChoice, extras }: Conversation, searches: readonly SearchTool[]): boolean {
  if (typeof toolChoice === "object") return searches.some(({ value }) => value.name === toolChoice.name);
  return new ChosenTools(searches).matching(extras?.openai?.tool_choice).length > 0;
}

/** The upstream's searches as calls and results, and its annotations as citations: each client dialect writes them in its form. */
export const shownNatively: Stage<ReplyEvent, ReplyEvent> = (next) => {
  /** The block that is open stands for a search, which was written whole. */
  let isSearchOpen = false;
  /** Of the open block's text. */
  let length = 0;
  return {
    push(event) {
      if (event.type === "block-delta") length += event.text.length;
      if (event.type === "block-start") {
        length = 0;
        isSearchOpen = isSearchBlock(event.block);
        if (!isSearchBlock(event.block)) return next.push(event);
        for (const block of blocksOf(event.block)) {
          next.push({ type: "block-start", block });
          next.push({ type: "block-end" });
        }
      } else if (event.type === "block-end" && isSearchOpen) isSearchOpen = false;
      else next.push(event.type === "block-end" ? withCitations(event, length) : event);
    },
    end: () => next.end(),
  };
};

const isSearchBlock = (block: { kind: string }): block is ForeignBlock & { value: JsonObject } => {
  const { value } = block as ForeignBlock;
  return block.kind === "foreign" && value.type === call;
};

function blocksOf({ value: { status, action } }: ForeignBlock & { value: JsonObject }) {
  const { query, url } = isObject(action) ? action : ({} as JsonObject);
  const pages = pagesRead(action);
  // Of a search without pages it is not known what it found.
  const output: ServerToolOutput =
    status === "failed"
      ? { kind: "error", code: "unavailable" }
      : pages.length > 0
        ? { kind: "pages", pages }
        : { kind: "unknown" };
  const id = serverCallId(output);
  const tool = "web-search" as const;
  return [
    { kind: "server-call" as const, id, tool, input: { query: textIn(query) || textIn(url) } },
    { kind: "server-result" as const, id, tool, output },
  ];
}

type BlockEndEvent = ReplyEvent & { type: "block-end" };

/** A citation without a place, as Grok gives it, is one of the whole text. @param length Of the text. */
function withCitations(event: BlockEndEvent, length: number): BlockEndEvent {
  const { openai = {} } = event.extras ?? {};
  const citations = urlsCited(openai.annotations).map(({ url, title, start, end }): Citation => {
    const place = typeof start === "number" && typeof end === "number" ? { start, end } : { start: 0, end: length };
    return { url, title: title || url, ...place, quote: "" };
  });
  if (citations.length === 0) return event;
  const extras = { ...event.extras, openai: without(openai, ["annotations"]) };
  return { ...event, extras, citations: [...(event.citations ?? []), ...citations] };
}
