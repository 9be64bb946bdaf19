/** Searches the web with a model of the upstream that does so by itself. The search has a row of its own. */
import { upstreamPaths } from "../../api-paths";
import { codecs } from "../../dialects/codecs";
import type { ServerToolOffer, WebPage } from "../../dialects/hub/server-tools";
import { foundPages, searchConversation } from "../../dialects/web-search";
import { ProxyError } from "../../errors";
import { isObject, notJson, parseWithSource } from "../../json";
import { type CallResponse, readText } from "../../net/body";
import { singleLimit } from "../../net/clock";
import type { Model } from "../../upstream/model";
import { findModel } from "../../upstream/model-name";
import { sendWithFailover } from "../failover";
import type { RequestRecord } from "../request-record";
import { BrokenReply } from "../respond";
import type { Target } from "../target";
import { type ToolContext, type ToolParts, toolFacts } from "./run";

/** Milliseconds that a search may take. */
const timeoutMs = 90_000;
const maxReplyBytes = 4 * 1024 * 1024;

/**
 * The model that searches; undefined if the config turns searches off, or if no model can search.
 * @throws ProxyError `not_found` for a model of the config that does not exist.
 */
export function searchModel({ catalogue, config }: Pick<ToolParts, "catalogue" | "config">): Model | undefined {
  const { webSearchModel, modelAliases } = config.current;
  if (webSearchModel === "off") return undefined;
  const models = catalogue.presentModels() ?? [];
  if (webSearchModel !== "auto") return findModel(webSearchModel, models, modelAliases);
  return models.filter(canSearch).sort((one, other) => priceOf(one) - priceOf(other))[0];
}

/** The upstream does not say which models search. OpenAI's models do, on the endpoint of the responses dialect. */
const canSearch = ({ kind, enabled, dialects, vendor }: Model): boolean =>
  kind === "chat" && enabled && dialects.includes("responses") && vendor.includes("OpenAI");

/** For comparison only. A model whose price is unknown comes last. */
function priceOf({ price }: Model): number {
  const { units, tokens } = price;
  if (tokens) return (tokens.input * 4 + tokens.output) / tokens.per;
  return units ?? Number.MAX_VALUE;
}

/** @throws ProxyError why there are no results. */
export async function searchWithModel(
  { parts, record }: ToolContext,
  query: string,
  offer: ServerToolOffer,
): Promise<WebPage[]> {
  const model = searchModel(parts);
  if (!model) throw new ProxyError("upstream", "No model that searches the web is available.");
  const effort = model.supports.efforts.includes("low") ? "low" : undefined;
  const conversation = searchConversation(query, offer, { model: model.id, effort });
  const { body } = codecs.responses.encodeRequest(conversation, model, { webSearch: true });
  const text = JSON.stringify(body);
  const own = record.openChild("web_search");
  const target: Target = { model, upstreamModel: model, dialect: "responses", endpoint: upstreamPaths.responses };
  own.setRequest({ bytes: Buffer.from(text), body, model: model.id, stream: false });
  own.setTarget(target, toolFacts);
  try {
    const pages = await sendWithFailover(parts, {
      target,
      outgoing: {
        path: target.endpoint,
        body: text,
        intent: "conversation-agent",
        initiator: toolFacts.initiator,
        vision: false,
        headers: {},
        limits: singleLimit(timeoutMs),
        preferredAccount: record.account,
      },
      record: own,
      accept: (response) => readPages(response, own),
    });
    own.end(200);
    return pages;
  } catch (thrown) {
    throw own.fail(thrown);
  }
}

async function readPages(response: CallResponse, record: RequestRecord): Promise<WebPage[]> {
  const json = parseWithSource(await readText(response, maxReplyBytes));
  if (!isObject(json)) throw notJson("GitHub Copilot's answer");
  const events = codecs.responses.decodeReply(json);
  record.markFirstByte();
  for (const event of events) record.addEvent(event);
  const failure = events.find((event) => event.type === "error");
  if (failure) throw new BrokenReply(failure, record.earlyError === undefined);
  const pages = foundPages(events);
  if (!pages) throw new ProxyError("upstream", "The model answered without a web search.");
  return pages;
}
