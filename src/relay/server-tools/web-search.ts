/** Runs a web search: the query goes to an engine, and its pages are held to the client's limits. */
import type { ServerToolCall, ServerToolError, ServerToolOffer, WebPage } from "../../dialects/hub/server-tools";
import { asProxyError, type ErrorKind } from "../../errors";
import { searchEngineOf } from "../../upstream/search-engines";
import { hasSearchModel, searchWithModel } from "./model-engine";
import { searchWithEngine } from "./other-engine";
import type { ToolContext, ToolParts, ToolRun } from "./run";

/** Characters. */
const longestQuery = 1000;

/** A failure becomes an error that client and model can read; it never ends the reply. */
export const runWebSearch: ToolRun = async (context, call, offer) => {
  const query = queryOf(call);
  if (query === "") return { kind: "error", code: "invalid_tool_input" };
  if (query.length > longestQuery) return { kind: "error", code: "query_too_long" };
  try {
    const pages = await search(context, query, offer);
    return { kind: "pages", pages: allowedPages(pages, offer) };
  } catch (thrown) {
    return { kind: "error", code: codes.get(asProxyError(thrown).kind) ?? "unavailable" };
  }
};

/** The config permits searches, and there is an engine. */
export const maySearch = (parts: ToolParts): boolean =>
  parts.config.current.useResponsesApiWebSearch &&
  (searchEngineOf(parts.config.current) !== undefined || hasSearchModel(parts));

function search(context: ToolContext, query: string, offer: ServerToolOffer): Promise<WebPage[]> {
  const engine = searchEngineOf(context.parts.config.current);
  return engine ? searchWithEngine(context, engine, query, offer) : searchWithModel(context, query, offer);
}

/** All others are `unavailable`. */
const codes = new Map<ErrorKind, ServerToolError>([
  ["rate_limit", "too_many_requests"],
  ["quota", "too_many_requests"],
]);

const queryOf = ({ input }: ServerToolCall): string => (typeof input.query === "string" ? input.query.trim() : "");

/** An engine may ignore the limits. */
const allowedPages = (pages: WebPage[], offer: ServerToolOffer): WebPage[] =>
  pages.filter(({ url }) => isAllowedPage(url, offer));
/** Whether the client's limits permit a page. */
export const isAllowedPage = (
  url: string,
  { allowedDomains, blockedDomains = [] }: Pick<ServerToolOffer, "allowedDomains" | "blockedDomains">,
): boolean =>
  (allowedDomains?.some((domain) => isBelow(url, domain)) ?? true) &&
  !blockedDomains.some((domain) => isBelow(url, domain));

/** @param domain A host name, perhaps with a path: `example.com/blog`. */
function isBelow(url: string, domain: string): boolean {
  const page = URL.parse(url);
  const limit = URL.parse(`https://${domain.replace(/^[a-z]+:\/\//i, "")}`);
  if (!page || !limit) return false;
  const isHost = page.hostname === limit.hostname || page.hostname.endsWith(`.${limit.hostname}`);
  return isHost && (limit.pathname === "/" || page.pathname.startsWith(limit.pathname));
}
