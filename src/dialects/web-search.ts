/** A web search as a conversation with a model that searches by itself. */
import type { Conversation } from "./hub/conversation";
import type { ReplyEvent } from "./hub/reply";
import type { ServerToolOffer, WebFindings, WebPage } from "./hub/server-tools";
import { nativeSearch, pagesRead, urlsCited } from "./responses/server-tools";

/** Tokens of the report, with the model's reasoning. */
const reportTokens = 4000;

/** @param effort How much the model is to think; undefined if it does not think. */
export function searchConversation(
  query: string,
  offer: ServerToolOffer,
  { model, effort }: { model: string; effort: string | undefined },
): Conversation {
  const instructions = [
    "You search the web for another model. Search the web for the query, then report what the pages say about it: facts, numbers, dates and names, in at most 500 words. Cite the page of each statement. Do not answer from memory.",
    offer.allowedDomains && `Use only pages of: ${offer.allowedDomains.join(", ")}.`,
    offer.blockedDomains && `Use no pages of: ${offer.blockedDomains.join(", ")}.`,
  ];
  const text = instructions.filter((line) => line).join("\n");
  return {
    model,
    turns: [
      { role: "system", parts: [{ kind: "text", text }], isInstructions: true },
      { role: "user", parts: [{ kind: "text", text: `Search the web for: ${query}` }] },
    ],
    tools: [nativeSearch(offer)],
    maxTokens: reportTokens,
    ...(effort === undefined ? {} : { reasoning: { effort } }),
    stream: false,
  };
}

/**
 * The pages that the model's report cites, each with the paragraphs that cite it first. Paragraphs without a citation go
 * with the next cited page. Of a report that cites none, as those of weather and prices, the searches tell the pages.
 * @returns Undefined if the model did not search.
 */
export function findingsIn(reply: readonly ReplyEvent[]): WebFindings | undefined {
  const hasSearched = reply.some(
    (event) => event.type === "block-start" && event.block.kind === "foreign" && event.block.ran === "web-search",
  );
  if (!hasSearched) return undefined;
  const pages = new Map<string, WebPage>();
  let text = "";
  let waiting = "";
  let last: WebPage | undefined;
  const addTo = (page: WebPage, paragraph: string) => {
    page.text = page.text === undefined ? paragraph : `${page.text}\n${paragraph}`;
  };
  for (const event of reply)
    if (event.type === "block-start") text = "";
    else if (event.type === "block-delta") text += event.text;
    else if (event.type === "block-end")
      for (const { paragraph, cited } of paragraphsOf(text, event.extras?.openai?.annotations)) {
        for (const { url, title } of cited) if (!pages.has(url)) pages.set(url, { url, title });
        waiting = waiting === "" ? paragraph : `${waiting}\n${paragraph}`;
        const page = pages.get(cited[0]?.url ?? "");
        if (!page) continue;
        addTo(page, waiting);
        waiting = "";
        last = page;
      }
  if (last && waiting !== "") addTo(last, waiting);
  if (last || waiting === "") return { pages: [...pages.values()] };
  const [first, ...others] = reply.flatMap(sourcesOf);
  return first ? { pages: [{ ...first, text: waiting }, ...others] } : { pages: [], report: waiting };
}

const sourcesOf = (event: ReplyEvent): WebPage[] =>
  event.type === "block-start" && event.block.kind === "foreign" ? pagesRead(event.block.value.action) : [];

function paragraphsOf(text: string, annotations: unknown) {
  const citations = urlsCited(annotations).map(({ url, title, start }) => ({
    url: plainUrl(url),
    title: title || plainUrl(url),
    at: typeof start === "number" ? start : 0,
  }));
  let end = 0;
  return text
    .split("\n")
    .map((line) => {
      const start = end;
      end += line.length + 1;
      const cited = citations.filter(({ at }) => at >= start && at < end);
      return { paragraph: line.trim(), cited };
    })
    .filter(({ paragraph }) => paragraph !== "");
}

/** OpenAI adds its name to the addresses. */
const plainUrl = (url: string): string =>
  url.replace(/([?&])utm_source=(?:openai|chatgpt\.com)(&|$)/, (_, before, after) => (after ? before : ""));
