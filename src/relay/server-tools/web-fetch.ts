/** Reads a web page for the model: only one whose address stands in the conversation, as text. */
import type { Part, Turn } from "../../dialects/hub/conversation";
import type {
  ServerToolCall,
  ServerToolError,
  ServerToolOffer,
  ServerToolOutput,
} from "../../dialects/hub/server-tools";
import { asProxyError } from "../../errors";
import { PageError, type PublicPage, type Reach, readPublicPage } from "../../net/public-page";
import type { ToolContext, ToolRun } from "./run";
import { isAllowedPage } from "./web-search";

/** Characters. */
const longestUrl = 250;
const longestText = 200_000;
const longestTitle = 300;
const charactersPerToken = 4;

/** A failure becomes an error that client and model can read; it never ends the reply. */
export const runWebFetch: ToolRun = (context, call, offer) => fetchFor(context, call, offer);

/** What a page's reading needs of the request. */
export interface FetchParts {
  parts: Pick<ToolContext["parts"], "now">;
  record: { controller: AbortController };
}

/** @param reach Tests name their own servers. */
export async function fetchFor(
  context: Pick<ToolContext, "turns" | "whole"> & FetchParts,
  { input }: ServerToolCall,
  offer: ServerToolOffer,
  reach?: Reach,
): Promise<ServerToolOutput> {
  const failed = (code: ServerToolError): ServerToolOutput => ({ kind: "error", code });
  const url = typeof input.url === "string" ? URL.parse(input.url.trim()) : null;
  if (!url) return failed("invalid_tool_input");
  if (url.href.length > longestUrl) return failed("url_too_long");
  url.hash = "";
  if (!addressesIn(context.turns?.() ?? [], context.whole).has(url.href)) return failed("url_not_in_prior_context");
  try {
    const page = await readPublicPage(url, {
      signal: context.record.controller.signal,
      reach,
      check(next) {
        if (!isAllowedPage(next.href, offer))
          throw new PageError("url_not_allowed", "The request does not allow this site.");
      },
    });
    const read = await textOf(page);
    if (!read) return failed("unsupported_content_type");
    const most = Math.min(longestText, (offer.maxContentTokens ?? Number.POSITIVE_INFINITY) * charactersPerToken);
    const text = read.text.length > most ? `${read.text.slice(0, most)}…` : read.text;
    return {
      kind: "document",
      document: {
        ...{ url: page.url, title: read.title, text, readAt: new Date(context.parts.now()).toISOString() },
        ...(offer.cites && { isCited: true }),
      },
    };
  } catch (thrown) {
    const error = asProxyError(thrown);
    return failed(error instanceof PageError ? error.failure : "unavailable");
  }
}

/**
 * The addresses that the person, a tool or a search has given. What only the model has written does not count: it could
 * send what it knows to a server of someone else.
 */
function addressesIn(turns: readonly Turn[], whole = (text: string) => text): Set<string> {
  const addresses = new Set<string>();
  const add = (text: string) => {
    const url = URL.parse(text);
    if (!url) return;
    url.hash = "";
    addresses.add(url.href);
  };
  const look = (part: Part): void => {
    if (part.kind === "text")
      for (const [found] of whole(part.text).matchAll(/https?:\/\/[^\s<>"'`]+/gi)) {
        add(found);
        // The sentence's own signs, and brackets around it.
        add(found.replace(/[.,;:!?)\]}*_|]+$/, ""));
        add(found.replace(/[)\]}].*$/, ""));
      }
    else if (part.kind === "tool-result") for (const inner of part.parts) look(inner);
    else if (part.kind === "file-link") add(part.url);
    else if (part.kind === "server-result" && part.output.kind === "pages")
      for (const { url } of part.output.pages) add(url);
    else if (part.kind === "server-result" && part.output.kind === "document") {
      add(part.output.document.url);
      look({ kind: "text", text: part.output.document.text });
    } else if (part.kind === "foreign") for (const inner of part.instead ?? []) look(inner);
  };
  for (const { role, parts } of turns)
    for (const part of parts)
      if (role !== "assistant" || part.kind === "server-result" || part.kind === "foreign") look(part);
  return addresses;
}

/** Undefined for what is no text. */
async function textOf({ type, charset, bytes }: PublicPage): Promise<{ title: string; text: string } | undefined> {
  const isHtml = type === "text/html" || type === "application/xhtml+xml";
  if (!isHtml && !/^text\/|^application\/(?:json|xml|[\w.+-]+\+(?:json|xml))$/.test(type)) return undefined;
  const text = decoded(bytes, charset);
  if (!isHtml) return { title: "", text };
  const { decodeHTML } = await import("entities");
  const page = readHtml(text);
  return { title: tidy(decodeHTML(page.title)).slice(0, longestTitle), text: tidy(decodeHTML(page.text)) };
}

/** Elements whose text is not the page's own. */
const silent = "head, script, style, noscript, template, svg, iframe, nav";
const blocks =
  "p, div, section, article, header, footer, main, aside, h1, h2, h3, h4, h5, h6, ul, ol, li, dl, dt, dd, table, tr, pre, blockquote, form, figure";

/** Bun's parser takes linear time whatever the page is: a page must not hold up all requests. Its texts are not decoded. */
function readHtml(html: string): { title: string; text: string } {
  const texts: string[] = [];
  let title = "";
  new HTMLRewriter()
    .on("title", {
      text(piece) {
        title += piece.text;
      },
    })
    .on(silent, {
      text(piece) {
        piece.remove();
      },
    })
    .on(blocks, {
      element(element) {
        texts.push("\n");
        if (element.canHaveContent) element.onEndTag(() => void texts.push("\n"));
      },
    })
    .on("br", { element: () => void texts.push("\n") })
    .on("td, th", { element: () => void texts.push(" | ") })
    .onDocument({
      text(piece) {
        if (!piece.removed) texts.push(piece.text);
      },
    })
    .transform(html);
  return { title, text: texts.join("") };
}

/** Without the space that HTML does not show. */
const tidy = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.replaceAll(/[ \t\r\f\u00a0]+/g, " ").trim())
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim();

function decoded(bytes: Uint8Array, charset: string | undefined): string {
  try {
    return new TextDecoder((charset ?? "utf-8") as "utf-8").decode(bytes);
  } catch {
    // A name that nobody knows: most pages are UTF-8 whatever they say.
    return new TextDecoder().decode(bytes);
  }
}
