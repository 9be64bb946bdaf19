/** Runs a web search: the query goes to an engine, and its pages are held to the client's limits. */
import type { ServerToolCall, ServerToolError, ServerToolOffer, WebFindings } from "../../dialects/hub/server-tools";
import { asProxyError, type ErrorKind } from "../../lib/errors";
import { matchesPattern } from "../../people/keys/client-keys";
import type { ToolContext, ToolParts, ToolRun } from "./context";
import { hasSearchModel, searchWithModel } from "./search-models";

/** Characters. */
const longestQuery = 1000;

/** A failure becomes an error that client and model can read; it never ends the reply. */
export const runWebSearch: ToolRun = async (context, call, offer) => {
  const query = queryOf(call);
  if (query === "") return { kind: "error", code: "invalid_tool_input" };
  const engine = context.parts.searchEngine();
  if (query.length > longestQuery || engine?.takes(query, offer) === false)
    return { kind: "error", code: "query_too_long" };
  try {
    return { kind: "pages", ...allowed(await search(context, query, offer), offer) };
  } catch (thrown) {
    return { kind: "error", code: codes.get(asProxyError(thrown).kind) ?? "unavailable" };
  }
};

/** The config permits searches, and there is an engine. */
export const maySearch = (parts: ToolParts): boolean =>
  parts.config.current.useResponsesApiWebSearch && (parts.searchEngine() !== undefined || hasSearchModel(parts));

async function search(context: ToolContext, query: string, offer: ServerToolOffer): Promise<WebFindings> {
  const engine = context.parts.searchEngine();
  if (!engine) return await searchWithModel(context, query, offer);
  return { pages: await context.searches.byEngine(engine, query, offer) };
}

/** All others are `unavailable`. */
const codes = new Map<ErrorKind, ServerToolError>([
  ["rate_limit", "too_many_requests"],
  ["quota", "too_many_requests"],
]);

const queryOf = ({ input }: ServerToolCall): string => (typeof input.query === "string" ? input.query.trim() : "");

/** Holds the pages to the limits, which an engine may ignore; a report that names no page cannot be held to them. */
function allowed({ pages, report }: WebFindings, offer: ServerToolOffer): WebFindings {
  if (!offer.allowedDomains && !offer.blockedDomains) return { pages, ...(report === undefined ? {} : { report }) };
  return { pages: pages.filter(({ url }) => isAllowedPage(url, offer)) };
}

/** Whether the client's limits permit a page. */
export const isAllowedPage = (
  url: string,
  { allowedDomains, blockedDomains = [] }: Pick<ServerToolOffer, "allowedDomains" | "blockedDomains">,
): boolean =>
  (allowedDomains?.some((domain) => isBelow(url, domain)) ?? true) &&
  !blockedDomains.some((domain) => isBelow(url, domain));

/** @param domain A host name, perhaps with a path, in which `*` stands for any text: `example.com/blog`, `example.com/news*`. */
function isBelow(url: string, domain: string): boolean {
  const page = URL.parse(url);
  const limit = URL.parse(`https://${domain.replace(/^(?:[a-z]+:\/\/)?(?:\*\.)?/i, "")}`);
  if (!page || !limit) return false;
  const isHost = page.hostname === limit.hostname || page.hostname.endsWith(`.${limit.hostname}`);
  const path = limit.pathname.replace(/\/$/, "");
  return isHost && [path, `${path}/*`].some((pattern) => matchesPattern(pattern, page.pathname));
}
