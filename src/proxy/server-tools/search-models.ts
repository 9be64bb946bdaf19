/** Searches the web with a model of the upstream that does so by itself. */
import { codecs } from "../../dialects/codecs";
import type { ServerToolOffer, WebFindings } from "../../dialects/hub/server-tools";
import { findingsIn, searchConversation } from "../../dialects/web-search";
import { asProxyError, ProxyError } from "../../lib/errors";
import { hourMs } from "../../lib/format";
import type { Model } from "../upstream/models/model";
import { findModel } from "../upstream/models/model-name";
import type { ToolContext, ToolParts, ToolTarget } from "./context";

type CatalogueParts = Pick<ToolParts, "catalogue" | "config">;

/** Whether the config permits that a model searches, and there may be one. */
export function hasSearchModel({ catalogue, config }: CatalogueParts): boolean {
  const { webSearchModel } = config.current;
  return webSearchModel === "auto" ? catalogue.knownModels().some(canSearch) : webSearchModel !== "off";
}

/**
 * The models that may search, the first one first.
 * @throws ProxyError `not_found` for a model of the config that does not exist.
 */
function searchModels({ catalogue, config, now }: CatalogueParts & Pick<ToolParts, "now">): Model[] {
  const { webSearchModel, modelAliases } = config.current;
  const models = catalogue.knownModels();
  if (webSearchModel !== "auto") return [findModel(webSearchModel, models, modelAliases)];
  const refusing = refusingModels(catalogue);
  return models
    .filter((model) => canSearch(model) && (refusing.get(model.id) ?? 0) <= now())
    .sort((one, other) => priceOf(one) - priceOf(other));
}

/** Until when (Unix ms) a model is not asked, by its id. */
const refusals = new WeakMap<ToolParts["catalogue"], Map<string, number>>();

function refusingModels(catalogue: ToolParts["catalogue"]): Map<string, number> {
  const known = refusals.get(catalogue) ?? new Map<string, number>();
  refusals.set(catalogue, known);
  return known;
}

/** The upstream does not say which models search. OpenAI's models do, on the endpoint of the responses dialect. */
const canSearch = ({ kind, enabled, dialects, vendor }: Model): boolean =>
  kind === "chat" && enabled && dialects.includes("responses") && vendor.includes("OpenAI");

/** Whether the model that answers searches by itself. An engine that the owner has chosen goes before. */
export function maySearchNatively(
  { catalogue, config, now, searchEngine }: CatalogueParts & Pick<ToolParts, "now" | "searchEngine">,
  { model, provider }: Pick<ToolTarget, "model" | "provider">,
): boolean {
  if (provider || !config.current.useResponsesApiWebSearch || searchEngine()) return false;
  return canSearch(model) && (refusingModels(catalogue).get(model.id) ?? 0) <= now();
}

/** For comparison only. A model whose price is unknown comes last. */
function priceOf({ price }: Model): number {
  const { units, tokens } = price;
  if (tokens) return (tokens.input * 4 + tokens.output) / tokens.per;
  return units ?? Number.MAX_VALUE;
}

/** How many models are tried for one search. */
const maxModels = 3;

/** A model that refuses to search is not asked again for an hour. @throws ProxyError why there are no results. */
export async function searchWithModel(
  context: ToolContext,
  query: string,
  offer: ServerToolOffer,
): Promise<WebFindings> {
  const { catalogue, now } = context.parts;
  const models = knownModels(context);
  for (let at = 0; ; at++) {
    const model = models[at]!;
    try {
      return await askModel(context, model, query, offer);
    } catch (thrown) {
      const error = asProxyError(thrown);
      const isOfTool = error.details.code === notSearchedCode || /search|tool/i.test(error.message);
      // Another refusal may be due to the query, which says nothing about other queries.
      if (isOfTool && isRefusal(error)) refusingModels(catalogue).set(model.id, now() + hourMs);
      if (!isRefusal(error) || at === models.length - 1) throw error;
    }
  }
}

/** The models to ask, at least one. A search that none can run has a row too, which says why. */
function knownModels({ parts, searches }: ToolContext): Model[] {
  try {
    const models = searchModels(parts).slice(0, maxModels);
    if (models.length > 0) return models;
    throw new ProxyError(
      "upstream",
      "No model that searches the web is available: those that may have refused in the last hour.",
    );
  } catch (thrown) {
    throw searches.failed(thrown);
  }
}

const notSearchedCode = "not_searched";

const isRefusal = ({ kind, details }: ProxyError): boolean =>
  kind === "invalid_request" || details.code === notSearchedCode;

function askModel(
  { searches }: ToolContext,
  model: Model,
  query: string,
  offer: ServerToolOffer,
): Promise<WebFindings> {
  const effort = model.supports.efforts.includes("low") ? "low" : undefined;
  const conversation = searchConversation(query, offer, { model: model.id, effort });
  const body = codecs.responses.encodeRequest(conversation, model, { webSearch: true });
  return searches.byModel(model, body, (events) => {
    const findings = findingsIn(events);
    if (!findings)
      throw new ProxyError("upstream", "The model answered without a web search.", { code: notSearchedCode });
    return findings;
  });
}
