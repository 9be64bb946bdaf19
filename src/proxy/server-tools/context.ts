/** The interface of the tools that run here. */

import type { Dialect, JsonObject } from "../../dialects/hub/conversation";
import type { ModelFacts } from "../../dialects/hub/model";
import type { ReplyEvent } from "../../dialects/hub/reply";
import type { ServerToolCall, ServerToolOffer, ServerToolOutput, WebPage } from "../../dialects/hub/server-tools";
import type { RequestScope } from "../scope";
import type { Model } from "../upstream/models/model";
import type { Provider } from "../upstream/providers/provider";
import type { SearchEngine } from "../upstream/search-engines";

export type ToolParts = Pick<RequestScope, "catalogue" | "config" | "now" | "searchEngine">;

/** The model that is asked for the reply. */
export interface ToolTarget {
  model: Model;
  upstreamModel: ModelFacts;
  dialect: Dialect;
  /** Missing for GitHub Copilot. */
  provider?: Provider;
}

/** Runs searches of the web. Each has a row of its own, and ends with the request that it runs for. */
export interface Searches {
  /**
   * @param body In the responses dialect.
   * @param read Makes the result of the model's reply; what it throws is the failure of the search.
   * @throws ProxyError
   */
  byModel<Found>(model: Model, body: JsonObject, read: (events: ReplyEvent[]) => Found): Promise<Found>;
  /** @throws ProxyError */
  byEngine(engine: SearchEngine, query: string, offer: ServerToolOffer): Promise<WebPage[]>;
  /** Writes the row of a search that cannot be run. */
  failed(why: unknown): Error;
}

export interface ToolContext {
  parts: ToolParts;
  searches: Searches;
  /** Aborts when the request for which the tool runs is stopped, as when the client hangs up. */
  signal: AbortSignal;
}

/** Runs one call. Never throws: a failure is an output as well. */
export type ToolRun = (context: ToolContext, call: ServerToolCall, offer: ServerToolOffer) => Promise<ServerToolOutput>;
