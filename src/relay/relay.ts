/** One request from a client, answered by an upstream, remembered by the history. */
import { type App, callLimits } from "../app";
import { codecs } from "../dialects/codecs";
import type { Dialect } from "../dialects/hub/conversation";
import type { Visitor } from "../net/guard";
import { affinityOf } from "./affinity-keys";
import { sendWithFailover } from "./failover";
import { readFacts, readIncoming } from "./incoming";
import { answerNothing, asksNothing, nothingSent } from "./nothing";
import { passthrough } from "./passthrough";
import { openRequestRecord } from "./request-record";
import { respondFull, respondStream } from "./respond";
import { chooseTarget } from "./target";
import { translation } from "./translation";

/** @throws ProxyError for the door to speak in the client's dialect; its row is written. */
export async function relay(app: App, request: Request, caller: Visitor, dialect: Dialect): Promise<Response> {
  const record = openRequestRecord(app, request, caller, dialect);
  try {
    const incoming = await readIncoming(request);
    caller.keepOpen();
    record.setRequest(incoming);
    const codec = codecs[dialect];
    codec.checkRequest(incoming.body);
    const target = await chooseTarget(app, incoming.model, dialect);
    const facts = readFacts(codec, incoming.body, request.headers);
    if (asksNothing(facts.conversation, target)) {
      record.setTarget(target, nothingSent);
      return answerNothing(facts.conversation, dialect, record);
    }
    record.setTarget(target, facts);
    const options = { webSearch: app.config.current.useResponsesApiWebSearch };
    const call =
      dialect === target.dialect
        ? passthrough(incoming, dialect, target, record, options, request.headers, facts.conversation)
        : translation(facts.conversation ?? codec.decodeRequest(incoming.body), dialect, target, record, options);

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
      ...affinityOf(app, request.headers, codec.session?.(incoming.body), facts.conversation),
    };
    return await sendWithFailover(app, target, outgoing, record, (response) =>
      incoming.stream
        ? respondStream(app, response, call, record, request.signal)
        : respondFull(response, call, record),
    );
  } catch (thrown) {
    throw record.fail(thrown);
  }
}
