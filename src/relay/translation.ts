/** The client and the upstream speak different dialects: request and reply are translated through the hub. */
import { codecs, type TranslationOptions } from "../dialects/codecs";
import { adapt } from "../dialects/hub/adapt";
import type { ClientDialect, Conversation, Dialect, JsonObject } from "../dialects/hub/conversation";
import type { ReplyEvent } from "../dialects/hub/reply";
import type { Skeleton } from "../net/json-skeleton";
import { collectInto, run, type Sink } from "../net/stream";
import type { RequestRecord } from "./request-record";
import { BrokenReply } from "./respond";
import { needsStream, type Target, whoOf } from "./target";
import type { UpstreamCall } from "./upstream-call";

export interface TranslationRequest {
  conversation: Conversation;
  /** Of the client's JSON; missing where the conversation has no marks. */
  skeleton?: Skeleton;
  client: ClientDialect;
  target: Target & { dialect: Dialect };
  record: RequestRecord;
  options: TranslationOptions;
  /** Reads the rough count of the prompt that was begun, once it is there. */
  estimate?: () => number | undefined;
}

/** @throws ProxyError `invalid_request` where leaving something out would change the meaning. */
export function translation({
  conversation,
  skeleton,
  client,
  target,
  record,
  options,
  estimate,
}: TranslationRequest): UpstreamCall {
  const upstream = target.dialect;
  // Collected into a full reply where the client did not ask for a stream.
  const stream = conversation.stream || needsStream(conversation, target);
  const adapted = adapt(conversation, upstream);
  for (const fixup of adapted.fixups) record.addFixup(fixup);
  record.addDropped(adapted.dropped);

  const encoded = codecs[upstream].encodeRequest({ ...adapted.conversation, stream }, target.upstreamModel, options);
  record.addDropped(encoded.dropped);
  for (const fixup of encoded.fixups ?? []) record.addFixup(fixup);
  const dialectHeaders = codecs[upstream].requestHeaders?.(null, encoded.body, target.upstreamModel);
  for (const fixup of dialectHeaders?.fixups ?? []) record.addFixup(fixup);
  const { repairRequest } = codecs[upstream];
  const written = (body: JsonObject) => {
    const json = JSON.stringify(body);
    return skeleton ? skeleton.fill(json) : json;
  };

  /** Adds each event to the record, with the names that the client's request uses. */
  const recorded = (next: Sink<ReplyEvent>): Sink<ReplyEvent> =>
    adapted.restore({
      push(event) {
        record.addEvent(event);
        next.push(event);
      },
      end: () => next.end(),
    });
  const encodeFull = (events: ReplyEvent[]): string => {
    const failure = events.find((event) => event.type === "error");
    if (failure) throw new BrokenReply(failure, record.earlyError === undefined);
    return JSON.stringify(codecs[client].encodeReply(events, conversation));
  };

  return {
    who: whoOf(target),
    body: written(encoded.body),
    stream,
    headers: dialectHeaders?.headers ?? {},
    repaired: repairRequest && (() => written(repairRequest(encoded.body))),
    full: (_text, json) => encodeFull(run(recorded, codecs[upstream].decodeReply(json))),
    collect() {
      const events: ReplyEvent[] = [];
      return { feed: codecs[upstream].decodeStream()(recorded(collectInto(events))), text: () => encodeFull(events) };
    },
    streamType: codecs[client].streamType?.(conversation),
    stages(out) {
      const reportedEstimate = () => {
        const tokens = estimate?.();
        if (tokens !== undefined) record.setEstimate(tokens);
        return tokens;
      };
      const sink = codecs[client].encodeStream(conversation, reportedEstimate)(out);
      return { client: sink, feed: codecs[upstream].decodeStream()(recorded(sink)) };
    },
  };
}
