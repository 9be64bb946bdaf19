/** Reads a web page for the model: only one whose address stands in the conversation, as text. */

import { beginningOf } from "../beginning";
import type { ServerToolCall, ServerToolError, ServerToolOffer, ServerToolOutput } from "../dialects/hub/server-tools";
import { asProxyError } from "../errors";
import { PageError, type Reach, readPublicPage } from "../net/out/public-page";
import { isGiven } from "./addresses";
import type { ToolContext } from "./context";
import { runTextTask } from "./text-work";
import { isAllowedPage } from "./web-search";

/** Characters. */
const longestUrl = 250;
/** Before what stands for one character is one. */
const longestWritten = 12 * longestUrl;
const longestText = 200_000;
const charactersPerToken = 4;

/**
 * A failure becomes an error that client and model can read; it never ends the reply.
 * @param reach Tests name their own servers.
 */
export async function runWebFetch(
  context: Pick<ToolContext, "signal" | "turns" | "whole"> & { parts: Pick<ToolContext["parts"], "now"> },
  { input }: ServerToolCall,
  offer: ServerToolOffer,
  reach?: Reach,
): Promise<ServerToolOutput> {
  const failed = (code: ServerToolError): ServerToolOutput => ({ kind: "error", code });
  if (typeof input.url === "string" && input.url.length > longestWritten) return failed("url_too_long");
  const url = typeof input.url === "string" ? URL.parse(input.url.trim()) : null;
  if (!url) return failed("invalid_tool_input");
  if (url.href.length > longestUrl) return failed("url_too_long");
  url.hash = "";
  if (!(await isGiven(url, context.turns?.() ?? [], context.whole))) return failed("url_not_in_prior_context");
  try {
    const page = await readPublicPage(url, {
      signal: context.signal,
      reach,
      check(next) {
        if (!isAllowedPage(next.href, offer))
          throw new PageError("url_not_allowed", "The request does not allow this site.");
      },
    });
    const { type, charset, bytes } = page;
    const read = await runTextTask("textOfPage", { type, charset, bytes });
    if (!read) return failed("unsupported_content_type");
    const most = Math.min(longestText, (offer.maxContentTokens ?? Number.POSITIVE_INFINITY) * charactersPerToken);
    const text = read.text.length > most ? `${beginningOf(read.text, most)}…` : read.text;
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
