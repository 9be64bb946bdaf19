/** Searches of the web that run for a request. Each has a row of its own. */

import { codecs } from "../../dialects/codecs";
import type { JsonObject } from "../../dialects/hub/conversation";
import type { ReplyEvent } from "../../dialects/hub/reply";
import type { ServerToolOffer, WebPage } from "../../dialects/hub/server-tools";
import { upstreamPaths } from "../../lib/api-paths";
import { asProxyError, type ProxyError } from "../../lib/errors";
import { isObject, notJson, parseWithSource } from "../../lib/json";
import { inOnePiece } from "../../lib/net/in/request-body";
import { type CallResponse, readText } from "../../lib/net/out/body";
import { singleLimit } from "../../lib/net/out/clock";
import type { RequestScope } from "../scope";
import type { Searches, ToolContext } from "../server-tools/context";
import type { Model } from "../upstream/models/model";
import type { SearchEngine } from "../upstream/search-engines";
import { withoutRefused } from "./body-remedies";
import { reserve } from "./budget-lines";
import type { Facts } from "./incoming";
import { BrokenReply } from "./respond";
import type { RunningRequest } from "./running-request";
import { send } from "./send";
import type { Target } from "./target";

/** Milliseconds that a search may take. */
const timeoutMs = 90_000;
const maxReplyBytes = 4 * 1024 * 1024;

const facts: Facts = { initiator: "agent", reason: "a tool that runs for a reply", vision: false };

/** The context of a tool that runs now for this request. */
export const toolContext = (parts: RequestScope, running: RunningRequest): ToolContext => ({
  parts,
  searches: new RequestSearches(parts, running),
  signal: running.controller.signal,
});

class RequestSearches implements Searches {
  constructor(
    private readonly parts: RequestScope,
    private readonly running: RunningRequest,
  ) {}

  async byModel<Found>(model: Model, body: JsonObject, read: (events: ReplyEvent[]) => Found): Promise<Found> {
    const text = JSON.stringify(body);
    const own = this.#open();
    const target: Target = { model, upstreamModel: model, dialect: "responses", endpoint: upstreamPaths.responses };
    own.book.setRequest({ bytes: Buffer.from(text), model: model.id, stream: false });
    own.book.setTarget(target, facts);
    try {
      const found = await send(this.parts, {
        target,
        outgoing: {
          path: target.endpoint,
          body: inOnePiece(withoutRefused(this.parts, target, text, own.book)),
          intent: "conversation-agent",
          initiator: facts.initiator,
          vision: false,
          headers: {},
          limits: singleLimit(timeoutMs),
          preferredAccount: this.running.book.chapter.answeredBy,
        },
        running: own,
        accept: async (response) => read(await readEvents(response, own)),
      });
      own.end(200);
      return found;
    } catch (thrown) {
      throw own.fail(thrown);
    }
  }

  async byEngine(engine: SearchEngine, query: string, offer: ServerToolOffer): Promise<WebPage[]> {
    const own = this.#open();
    const { book } = own;
    const model = { id: engine.name, price: { premium: false } };
    book.setTarget({ model, dialect: null, endpoint: `search:${engine.name}` }, facts);
    book.beginAttempt(null, null);
    let hasAnswered = false;
    const attempt = (outcome: number | ProxyError) => {
      hasAnswered = true;
      book.endAttempt(outcome);
    };
    try {
      const refused = await reserve(this.parts, own, null);
      if (refused) throw refused;
      const pages = await engine.search(query, offer, own.controller, attempt);
      book.markFirstByte();
      own.end(200);
      return pages;
    } catch (thrown) {
      if (!hasAnswered) attempt(asProxyError(thrown));
      throw own.fail(thrown);
    }
  }

  failed(why: unknown): ProxyError {
    return this.#open().fail(why);
  }

  #open(): RunningRequest {
    return this.running.openSearch();
  }
}

/** The events of a full reply. @throws BrokenReply; ProxyError `upstream` when it is no reply. */
async function readEvents(response: CallResponse, running: RunningRequest): Promise<ReplyEvent[]> {
  const { book } = running;
  const json = parseWithSource(await readText(response, maxReplyBytes));
  if (!isObject(json)) throw notJson("GitHub Copilot's answer");
  const events = codecs.responses.decodeReply(json);
  book.markFirstByte();
  // Its searches are counted by the request that it runs for.
  for (const event of events) if (event.type !== "block-start") running.addEvent(event);
  const failure = events.find((event) => event.type === "error");
  if (failure) throw new BrokenReply(failure, book.earlyError === undefined);
  return events;
}
