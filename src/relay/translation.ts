/** Another dialect: through the hub and back. */
import { codecs, type TranslationOptions } from "../dialects/codecs";
import { adapt } from "../dialects/hub/adapt";
import type { Conversation, Dialect } from "../dialects/hub/conversation";
import type { ReplyEvent } from "../dialects/hub/reply";
import { collect, run, type Sink } from "../net/stream";
import type { RequestRecord } from "./request-record";
import { BrokenReply } from "./respond";
import { needsStream, type Target } from "./target";
import type { UpstreamCall } from "./upstream-call";

/** @throws ProxyError `invalid_request` where leaving something out would change the meaning. */
export function translation(
  conversation: Conversation,
  client: Dialect,
  target: Target,
  exchange: RequestRecord,
  options: TranslationOptions,
): UpstreamCall {
  const upstream = target.dialect!;
  // A stream that the client did not ask for is collected into the full reply it wants.
  const stream = conversation.stream || needsStream(conversation, target);
  const adapted = adapt(conversation, upstream);
  for (const fixup of adapted.fixups) exchange.addFixup(fixup);
  exchange.addDropped(adapted.dropped);

  const encoded = codecs[upstream].encodeRequest({ ...adapted.conversation, stream }, target.model, options);
  exchange.addDropped(encoded.dropped);
  const own = codecs[upstream].requestHeaders?.(null, encoded.body, target.model);
  for (const mend of own?.fixups ?? []) exchange.addFixup(mend);
  const { repairRequest } = codecs[upstream];

  /** Events as the client's conversation knows them, seen by the books on the way. */
  const seen = (next: Sink<ReplyEvent>): Sink<ReplyEvent> =>
    adapted.restore({
      push(event) {
        exchange.addEvent(event);
        next.push(event);
      },
      end: () => next.end(),
    });
  const fold = (events: ReplyEvent[]): string => {
    const failure = events.find((event) => event.type === "error");
    if (failure) throw new BrokenReply(failure, exchange.earlyError === undefined);
    return JSON.stringify(codecs[client].encodeReply(events, conversation));
  };

  return {
    who: "GitHub Copilot",
    body: JSON.stringify(encoded.body),
    stream,
    headers: own?.headers ?? {},
    repaired: repairRequest && (() => JSON.stringify(repairRequest(encoded.body))),
    full: (_text, json) => fold(run(seen, codecs[upstream].decodeReply(json))),
    collect() {
      const events: ReplyEvent[] = [];
      return { feed: codecs[upstream].decodeStream()(seen(collect(events))), text: () => fold(events) };
    },
    stages(out) {
      const sink = codecs[client].encodeStream(conversation)(out);
      return { client: sink, feed: codecs[upstream].decodeStream()(seen(sink)) };
    },
  };
}
