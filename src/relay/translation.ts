/** Request and reply go through the hub: the client and the upstream speak different dialects, or tools run in between. */
import { type ClientSink, codecs, type TranslationOptions } from "../dialects/codecs";
import { adapt } from "../dialects/hub/adapt";
import type { ClientDialect, Conversation, Dialect, JsonObject } from "../dialects/hub/conversation";
import { omitUndefined } from "../dialects/hub/json";
import type { ReplyEvent, Usage } from "../dialects/hub/reply";
import { separateTexts } from "../dialects/hub/separate-texts";
import type { OfferedTools } from "../dialects/hub/server-offers";
import { shownNatively } from "../dialects/native-search";
import type { Skeleton } from "../net/json/json-skeleton";
import type { ResponseBody } from "../net/out/body";
import type { SseFrame } from "../net/stream/sse";
import { collectInto, pipe, run, type Sink, type Stage } from "../net/stream/stream";
import { concealedError } from "./conceal";
import type { ReplyParts } from "./passthrough";
import type { RequestRecord } from "./request-record";
import { BrokenReply } from "./respond";
import { openLoop, type ServerToolPlan } from "./server-tools/open-loop";
import type { ToolParts } from "./server-tools/run";
import { fullUnused, streamUnused } from "./server-tools/unused";
import { needsStream, type Target, whoOf } from "./target";
import { type Answer, readFrames, type UpstreamCall, withoutBeta } from "./upstream-call";

export interface TranslationRequest {
  conversation: Conversation;
  /** Of the client's JSON; missing where the conversation has no marks. */
  skeleton?: Skeleton;
  client: ClientDialect;
  target: Target & { dialect: Dialect };
  record: RequestRecord;
  options: TranslationOptions;
  /** The client's headers, if the upstream speaks its dialect. */
  clientHeaders?: Headers;
  /** What is sent instead of the client's tools. */
  offered?: ServerToolPlan;
  /** For the tools among them that run here while the model answers. */
  serverTools?: {
    parts: ToolParts;
    /** Sends the request for a further answer. */
    send(turn: EncodedTurn): Promise<ResponseBody>;
  };
  /** For a client of the upstream's dialect: how replies are passed on to it. */
  own?: Pick<ReplyParts, "codec" | "context">;
  /** Changes the reply on its way to the client. */
  reshape?: Stage<ReplyEvent, ReplyEvent>;
  /** Reads the rough count of the prompt that was begun, once it is there. */
  estimate?: () => number | undefined;
}

/** One request to the upstream, and the way back to the client's names. */
export interface EncodedTurn extends Pick<UpstreamCall, "body" | "headers" | "repaired" | "withoutBeta"> {
  restore: Stage<ReplyEvent, ReplyEvent>;
}

/** @throws ProxyError `invalid_request` where leaving something out would change the meaning. */
export function translation(request: TranslationRequest): UpstreamCall {
  const { conversation, client, target, record, offered, serverTools, reshape, estimate } = request;
  const upstream = target.dialect;
  // Collected into a full reply where the client did not ask for a stream.
  const running = offered && offered.offers.size > 0 && serverTools ? { ...serverTools, offered } : undefined;
  const isStreamed = conversation.stream || needsStream(conversation, target);
  record.addChanges(offered ?? {});
  const asked = offered?.conversation ?? conversation;
  const plain = encodeTurn(request, asked, isStreamed);
  const own = running && isUnchanged(plain.restore) ? request.own : undefined;
  // A reply that may go on is asked for as a stream, unless the client may get the upstream's own text.
  const stream = isStreamed || (running !== undefined && own === undefined);
  const { restore, ...first } = stream === isStreamed ? plain : encodeTurn(request, asked, stream);
  const encodeFull = (events: ReplyEvent[]): string => {
    const failure = events.find((event) => event.type === "error");
    if (failure) throw new BrokenReply(failure, record.earlyError === undefined);
    return JSON.stringify(codecs[client].encodeReply(events, conversation));
  };
  const reportedEstimate = () => {
    const tokens = estimate?.();
    if (tokens !== undefined) record.setEstimate("estimatedInput", tokens);
    return tokens;
  };
  const clientStream = (out: Sink<SseFrame>) => codecs[client].encodeStream(conversation, reportedEstimate)(out);
  const counted = estimate ? pipe(recordedBy(record), withNumbers(record, reportedEstimate)) : recordedBy(record);
  const recorded = reshape ? pipe(reshape, counted) : counted;
  const frames = (next: Sink<ReplyEvent>) => codecs[upstream].decodeStream()(restore(recorded(next)));

  return {
    ...first,
    who: whoOf(target),
    stream,
    streamType: codecs[client].streamType?.(conversation),
    full: (_text, json) => encodeFull(run((next) => restore(recorded(next)), codecs[upstream].decodeReply(json))),
    collect(answer) {
      const events: ReplyEvent[] = [];
      const bytes = readFrames(answer, frames(collectInto(events)));
      return { body: answer.body, bytes, text: () => encodeFull(events) };
    },
    stages(answer, out) {
      const client = clientStream(out);
      return { body: answer.body, bytes: readFrames(answer, frames(client)), client };
    },
    ...(running && turnedReply({ ...request, own }, running, restore, { encodeFull, clientStream, counted })),
  };
}

/** How a reply of several answers of the upstream is read, with what tools did in between. */
function turnedReply(
  request: TranslationRequest,
  { parts, offered, send }: NonNullable<TranslationRequest["serverTools"]> & { offered: OfferedTools },
  restore: EncodedTurn["restore"],
  ways: {
    encodeFull(events: ReplyEvent[]): string;
    clientStream(out: Sink<SseFrame>): ClientSink<ReplyEvent>;
    /** Adds each event to the record. */
    counted: Stage<ReplyEvent, ReplyEvent>;
  },
): Pick<UpstreamCall, "full" | "collect" | "stages"> {
  const { record, target, client } = request;
  const bytesInto = (answer: Pick<Answer, "watch">, events: Sink<ReplyEvent>, restore: EncodedTurn["restore"]) =>
    readFrames(answer, codecs[target.dialect].decodeStream()(restore(events)));
  const open = (
    first: Answer,
    next: Sink<ReplyEvent>,
    read = (events: Sink<ReplyEvent>) => bytesInto(first, events, restore),
  ) =>
    openLoop(
      {
        parts,
        offered,
        record,
        whole: request.skeleton?.whole,
        async ask(conversation, events) {
          const turn = encodeTurn(request, conversation, true);
          return { body: await send(turn), bytes: bytesInto({}, events, turn.restore) };
        },
      },
      first.body,
      read,
      ways.counted(codecs[client].facts.joinsTexts ? separateTexts(next) : next),
    );
  const unusedOf = (own: NonNullable<typeof request.own>, turned: () => { hasCalled: boolean }) => ({
    ...own,
    record,
    isUsed: () => turned().hasCalled,
  });
  return {
    full: undefined,
    collect(first) {
      const events: ReplyEvent[] = [];
      const text = () => ways.encodeFull(events);
      const { own } = request;
      if (!own || first.isStream) return { ...open(first, collectInto(events)), text };
      const unused = fullUnused(
        unusedOf(own, () => turned),
        whoOf(target),
        first.watch,
      );
      const turned = open(first, collectInto(events), unused.bytes);
      const hasFailed = () => events.some(({ type }) => type === "error");
      return { ...turned, text: () => (hasFailed() ? undefined : unused.text()) ?? text() };
    },
    stages(first, out) {
      const { own } = request;
      if (!own) {
        const client = ways.clientStream(out);
        return { ...open(first, client), client };
      }
      const unused = streamUnused(
        unusedOf(own, () => turned),
        ways.clientStream,
        out,
        first,
      );
      const turned = open(first, unused.writer, unused.bytes);
      return { ...turned, client: unused.client };
    },
  };
}

/** Whether the reply's events reach the client as they are. */
function isUnchanged(restore: EncodedTurn["restore"]): boolean {
  const probe: Sink<ReplyEvent> = { push() {}, end() {} };
  return restore(probe) === probe;
}

/** @throws ProxyError `invalid_request` where leaving something out would change the meaning. */
function encodeTurn(request: TranslationRequest, conversation: Conversation, stream: boolean): EncodedTurn {
  const { skeleton, client, target, record, options, clientHeaders } = request;
  const upstream = target.dialect;
  const adapted = adapt(conversation, upstream);
  record.addChanges(adapted);
  const encoded = codecs[upstream].encodeRequest({ ...adapted.conversation, stream }, target.upstreamModel, options);
  record.addChanges(encoded);
  const dialectHeaders = codecs[upstream].requestHeaders?.(
    clientHeaders ?? null,
    encoded.body,
    target.upstreamModel,
    options,
  );
  record.addChanges(dialectHeaders ?? {});
  const written = (body: JsonObject) => {
    const json = JSON.stringify(body);
    return skeleton ? skeleton.fill(json) : json;
  };
  return {
    body: written(encoded.body),
    headers: dialectHeaders?.headers ?? {},
    repaired: () => written(codecs[upstream].repairRequest(encoded.body)),
    withoutBeta: (beta) =>
      withoutBeta(beta, options, (less) => encodeTurn({ ...request, options: less }, conversation, stream)),
    restore:
      client !== "responses" && upstream === "responses" ? pipe(shownNatively, adapted.restore) : adapted.restore,
  };
}

/** Characters of a reply in a token, roughly. */
const charactersPerToken = 4;

/** The numbers that the client's dialect requires and the upstream has not reported: estimates, which the row marks. */
const withNumbers =
  (record: RequestRecord, estimateInput: () => number | undefined): Stage<ReplyEvent, ReplyEvent> =>
  (next) => {
    const reported: Partial<Usage> = {};
    let length = 0;
    return {
      push(event) {
        if (event.type === "block-delta") length += event.text.length;
        else if (event.type === "usage") Object.assign(reported, event.usage);
        else if (event.type === "finish") {
          const usage: Partial<Usage> = {};
          if (reported.input === undefined) usage.input = estimateInput();
          if (reported.output === undefined) {
            usage.output = Math.ceil(length / charactersPerToken);
            record.setEstimate("estimatedOutput", usage.output);
          }
          if (Object.keys(usage).length > 0) next.push({ type: "usage", usage: omitUndefined(usage) });
        }
        next.push(event);
      },
      end: () => next.end(),
    };
  };

/** Adds each event to the record. What comes after it is for the client. */
const recordedBy =
  (record: RequestRecord): Stage<ReplyEvent, ReplyEvent> =>
  (next) => ({
    push(event) {
      if (event.type === "usage") return next.push({ ...event, usage: record.addUsage(event.usage) });
      record.addEvent(event);
      next.push(event.type === "error" ? concealedError(event, record.conceal) : event);
    },
    end: () => next.end(),
  });
