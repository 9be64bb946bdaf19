/** Request and reply go through the hub: the client and the upstream speak different dialects, or tools run in between. */
import type { Scope } from "../app";
import type { ClientCodec } from "../dialects/codec";
import { type ClientSink, codecs, type TranslationOptions } from "../dialects/codecs";
import { adapt } from "../dialects/hub/adapt";
import type { Conversation, Dialect, JsonObject } from "../dialects/hub/conversation";
import { omitUndefined } from "../dialects/hub/json";
import type { ReplyEvent, Usage } from "../dialects/hub/reply";
import { separateTexts } from "../dialects/hub/separate-texts";
import { shownNatively } from "../dialects/native-search";
import { withTexts } from "../net/in/request-body";
import type { ResponseBody } from "../net/out/body";
import type { SseFrame } from "../net/stream/sse";
import { collectInto, pipe, run, type Sink, type Stage } from "../net/stream/stream";
import { openLoop } from "../server-tools/open-loop";
import type { ServerToolPlan } from "../server-tools/plan";
import type { Exchange } from "./exchange";
import { PassedReply } from "./passthrough";
import type { RequestRecord } from "./request-record";
import { BrokenReply } from "./respond";
import type { RunningRequest } from "./running-request";
import { toolContext } from "./searches";
import { needsStream, type Target, whoOf } from "./target";
import { fullUnused, streamUnused } from "./unused-tools";
import { type Answer, type Reading, readFrames, type UpstreamCall, type UpstreamReply } from "./upstream-call";

/** One request to the upstream, and the way back to the client's names. */
interface Encoded extends Pick<UpstreamCall, "body" | "headers"> {
  restore: Stage<ReplyEvent, ReplyEvent>;
}

type TranslationTarget = Target & { dialect: Dialect };

interface TranslationTools {
  /** What is sent in place of the client's tools. */
  plan?: ServerToolPlan;
  parts: Scope;
  /** Sends the request for a further answer, after tools have run here. */
  send(encoded: Encoded, stream: boolean): Promise<ResponseBody>;
  /** Reads the rough count of the prompt that was begun, once it is there. */
  estimate?: () => number | undefined;
}

/** @throws ProxyError `invalid_request` where leaving something out would change the meaning. */
export function translation(
  exchange: Exchange,
  target: TranslationTarget,
  options: TranslationOptions,
  tools?: TranslationTools,
): UpstreamCall {
  const { codec, record } = exchange;
  const plan = tools?.plan;
  const conversation = exchange.decoded();
  // Collected into a full reply where the client did not ask for a stream.
  const isStreamed = conversation.stream || needsStream(conversation.maxTokens, target);
  record.addChanges(plan ?? {});
  const asked = plan?.conversation ?? conversation;
  const plain = encode(exchange, target, options, asked, isStreamed);
  const call = { who: whoOf(target), streamType: codec.streamType?.(conversation) };
  const reply = new TranslatedReply(exchange, target, plain.restore, tools?.estimate);
  if (!plan || plan.offers.size === 0) return { ...plain, ...call, stream: isStreamed, reply };
  const own = isUnchanged(plain.restore) ? ownReply(exchange, target) : undefined;
  // A reply that may go on is asked for as a stream, unless the client may get the upstream's own text.
  const stream = isStreamed || own === undefined;
  const first = stream === isStreamed ? plain : encode(exchange, target, options, asked, stream);
  const ask = async (next: Conversation) => {
    const encoded = encode(exchange, target, options, next, true);
    return { body: await tools.send(encoded, stream), restore: encoded.restore };
  };
  return {
    ...first,
    ...call,
    stream,
    reply: new LoopedReply(reply, { parts: tools.parts, plan, ask }, own),
  };
}

/** A reply of the upstream, as the client's dialect has it. It keeps nothing of the prompt. */
class TranslatedReply implements UpstreamReply {
  readonly codec: ClientCodec;
  readonly running: RunningRequest;
  /** What a reply repeats of the request. */
  readonly #asked: Conversation;
  readonly #decoded: Stage<ReplyEvent, ReplyEvent>;

  /** @param restore Gives back the client's names. */
  constructor(
    exchange: Exchange,
    readonly target: TranslationTarget,
    readonly restore: Encoded["restore"],
    private readonly estimate: TranslationTools["estimate"],
  ) {
    const { codec, reshape, running } = exchange;
    const asked = exchange.decoded();
    this.codec = codec;
    this.running = running;
    this.#asked = { ...asked, turns: asked.turns.filter(({ isInstructions }) => isInstructions) };
    this.#decoded = pipe(restore, reshape ? pipe(reshape, this.counted) : this.counted);
  }

  /** Adds each event to the record, and numbers that the upstream has not reported. */
  readonly counted: Stage<ReplyEvent, ReplyEvent> = (next) =>
    recordedBy(this.running)(this.estimate ? withNumbers(this.running.record, () => this.#estimated())(next) : next);

  /** @throws BrokenReply */
  encodeFull(events: ReplyEvent[]): string {
    const failure = events.find((event) => event.type === "error");
    if (failure) throw new BrokenReply(failure, this.running.record.earlyError === undefined);
    return JSON.stringify(this.codec.encodeReply(events, this.#asked));
  }

  readonly clientStream = (out: Sink<SseFrame>): ClientSink<ReplyEvent> =>
    this.codec.encodeStream(this.#asked, () => this.#estimated())(out);

  /** The sink for an answer's bytes. @param events Where its events go. */
  bytesInto(
    answer: Pick<Answer, "watch">,
    events: Sink<ReplyEvent>,
    decoded: Stage<ReplyEvent, ReplyEvent> = this.restore,
  ): Sink<Uint8Array> {
    return readFrames(answer, codecs[this.target.dialect].decodeStream()(decoded(events)));
  }

  full(_text: string, json: JsonObject): string {
    return this.encodeFull(run(this.#decoded, codecs[this.target.dialect].decodeReply(json)));
  }

  collect(answer: Answer) {
    const events: ReplyEvent[] = [];
    const bytes = this.bytesInto(answer, collectInto(events), this.#decoded);
    return { body: answer.body, bytes, text: () => this.encodeFull(events) };
  }

  stages(answer: Answer, out: Sink<SseFrame>) {
    const client = this.clientStream(out);
    return { body: answer.body, bytes: this.bytesInto(answer, client, this.#decoded), client };
  }

  #estimated(): number | undefined {
    const tokens = this.estimate?.();
    if (tokens !== undefined) this.running.record.setEstimate("estimatedInput", tokens);
    return tokens;
  }
}

interface Loop {
  plan: ServerToolPlan;
  parts: Scope;
  /** Asks the upstream to go on. */
  ask(conversation: Conversation): Promise<{ body: ResponseBody } & Pick<Encoded, "restore">>;
}

/** A reply of several answers of the upstream, with what tools did in between. */
class LoopedReply implements UpstreamReply {
  /** @param own How the reply is passed on as long as no tool was used; undefined if it is always written anew. */
  constructor(
    private readonly reply: TranslatedReply,
    private readonly loop: Loop,
    private readonly own: PassedReply | undefined,
  ) {}

  collect(first: Answer) {
    const { own, reply } = this;
    const events: ReplyEvent[] = [];
    const text = () => reply.encodeFull(events);
    if (!own || first.isStream) return { ...this.#open(first, collectInto(events)), text };
    const unused = fullUnused(own, () => looped.hasCalled, whoOf(reply.target), first.watch);
    const looped = this.#open(first, collectInto(events), unused.bytes);
    const hasFailed = () => events.some(({ type }) => type === "error");
    return { ...looped, text: () => (hasFailed() ? undefined : unused.text()) ?? text() };
  }

  stages(first: Answer, out: Sink<SseFrame>) {
    const { own, reply } = this;
    if (!own) {
      const client = reply.clientStream(out);
      return { ...this.#open(first, client), client };
    }
    const unused = streamUnused(own, () => looped.hasCalled, reply.clientStream, out, first);
    const looped = this.#open(first, unused.writer, unused.bytes);
    return { ...looped, client: unused.client };
  }

  /**
   * @param next Gets the events of the whole reply.
   * @param read Makes the sink for the first answer's bytes.
   */
  #open(
    first: Answer,
    next: Sink<ReplyEvent>,
    read = (events: Sink<ReplyEvent>) => this.reply.bytesInto(first, events),
  ): Reading & { hasCalled: boolean } {
    const { reply } = this;
    const { plan, parts, ask } = this.loop;
    const { codec, running } = reply;
    const continueWith = async (conversation: Conversation, events: Sink<ReplyEvent>) => {
      running.askAgain();
      const { body, restore } = await ask(conversation);
      return { body, bytes: reply.bytesInto({}, events, restore) };
    };
    const events = reply.counted(codec.facts.joinsTexts ? separateTexts(next) : next);
    const context = () => toolContext(parts, running);
    return openLoop({ offered: plan, context, ask: continueWith }, first.body, read, events);
  }
}

/**
 * How the upstream's reply is passed on to a client of its dialect. Events of the responses dialect are numbered: a stream is
 * written by one writer.
 */
function ownReply(exchange: Exchange, target: TranslationTarget): PassedReply | undefined {
  const { dialect, incoming } = exchange;
  if (dialect !== target.dialect || (dialect === "responses" && incoming.stream)) return undefined;
  return new PassedReply(exchange, target);
}

/** Whether the reply's events reach the client as they are. */
function isUnchanged(restore: Encoded["restore"]): boolean {
  const probe: Sink<ReplyEvent> = { push() {}, end() {} };
  return restore(probe) === probe;
}

/** @throws ProxyError `invalid_request` where leaving something out would change the meaning. */
function encode(
  exchange: Exchange,
  target: TranslationTarget,
  options: TranslationOptions,
  conversation: Conversation,
  stream: boolean,
): Encoded {
  const { dialect: client, headers, incoming, record } = exchange;
  const { dialect: upstream, upstreamModel } = target;
  const codec = codecs[upstream];
  const adapted = adapt(conversation, upstream, upstreamModel.vendor);
  record.addChanges(adapted);
  const encoded = codec.encodeRequest({ ...adapted.conversation, stream }, upstreamModel, options);
  record.addChanges(encoded);
  const ofDialect = codec.requestHeaders?.(client === upstream ? headers : null, encoded.body, upstreamModel, options);
  record.addChanges(ofDialect ?? {});
  return {
    body: withTexts(JSON.stringify(encoded.body), incoming.skeleton),
    headers: ofDialect?.headers ?? {},
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
  (running: RunningRequest): Stage<ReplyEvent, ReplyEvent> =>
  (next) => ({
    push(event) {
      if (event.type === "usage") return next.push({ ...event, usage: running.record.addUsage(event.usage) });
      running.addEvent(event);
      next.push(event);
    },
    end: () => next.end(),
  });
