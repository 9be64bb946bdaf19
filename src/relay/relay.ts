/** One request from a client, answered by an upstream, remembered by the history. */
import { type App, callLimits } from "../app";
import { codecs } from "../dialects/codecs";
import type { Dialect } from "../dialects/hub/conversation";
import type { Visitor } from "../net/guard";
import { answerFull, answerStream } from "./answer";
import { beginExchange } from "./exchange";
import { readFacts, readIncoming } from "./incoming";
import { answerNothing, asksNothing, nothingSent } from "./nothing";
import { ownership } from "./owner";
import { passthrough } from "./passthrough";
import { send } from "./send";
import { chooseTarget } from "./target";
import { translation } from "./translation";

/** @throws ProxyError for the door to speak in the client's dialect; its row is written. */
export async function relay(app: App, request: Request, caller: Visitor, dialect: Dialect): Promise<Response> {
  const exchange = beginExchange(app, request, caller, dialect);
  try {
    const incoming = await readIncoming(request);
    caller.keepOpen();
    exchange.asked(incoming);
    const codec = codecs[dialect];
    codec.checkRequest(incoming.body);
    const target = await chooseTarget(app, incoming.model, dialect);
    const facts = readFacts(codec, incoming.body, request.headers);
    if (asksNothing(facts.conversation, target)) {
      exchange.routed(target, nothingSent);
      return answerNothing(facts.conversation, dialect, exchange);
    }
    exchange.routed(target, facts);
    const wishes = { webSearch: app.config.current.useResponsesApiWebSearch };
    const call =
      dialect === target.dialect
        ? passthrough(incoming, dialect, target, exchange, wishes, request.headers, facts.conversation)
        : translation(facts.conversation ?? codec.decodeRequest(incoming.body), dialect, target, exchange, wishes);

    const outgoing = {
      path: target.endpoint,
      body: call.body,
      intent: "conversation-agent" as const,
      initiator: facts.initiator,
      vision: facts.vision,
      headers: call.headers,
      limits: callLimits(app.limits, call.stream),
      repaired: call.repaired,
      fitTools: call.fitTools,
      ...ownership(app, request.headers, codec.session?.(incoming.body), facts.conversation),
    };
    return await send(app, target, outgoing, exchange, (response) =>
      incoming.stream
        ? answerStream(app, response, call, exchange, request.signal)
        : answerFull(response, call, exchange),
    );
  } catch (thrown) {
    throw exchange.failed(thrown);
  }
}
