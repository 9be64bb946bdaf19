/** Searches the web with an engine of the config. The search has a row of its own, as one with a model has. */
import type { ServerToolOffer, WebPage } from "../../dialects/hub/server-tools";
import { asProxyError, type ProxyError } from "../../errors";
import type { SearchEngine } from "../../upstream/search-engines";
import { type ToolContext, toolFacts } from "./run";

/** @throws ProxyError why there are no results. */
export async function searchWithEngine(
  { running }: ToolContext,
  engine: SearchEngine,
  query: string,
  offer: ServerToolOffer,
): Promise<WebPage[]> {
  const own = running.openChild("web_search");
  const { record } = own;
  record.setTarget(
    { model: { id: engine.name, price: { premium: false } }, dialect: null, endpoint: `search:${engine.name}` },
    toolFacts,
  );
  const sentAt = performance.now();
  let hasAnswered = false;
  const attempt = (outcome: number | ProxyError) => {
    hasAnswered = true;
    record.addAttempt(null, outcome, Math.round(performance.now() - sentAt));
  };
  try {
    const refused = await own.budget.reserve(null);
    if (refused) throw refused;
    const pages = await engine.search(query, offer, own.controller, attempt);
    record.markFirstByte();
    own.end(200);
    return pages;
  } catch (thrown) {
    if (!hasAnswered) attempt(asProxyError(thrown));
    throw own.fail(thrown);
  }
}
