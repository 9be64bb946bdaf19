/** The contract that each of the three dialects keeps. */
import type { ProxyError } from "../errors";
import type { SseFrame } from "../net/sse";
import type { Sink, Stage } from "../net/stream";
import type { Conversation, JsonObject } from "./hub/conversation";
import type { ModelFacts } from "./hub/model";
import type { ReplyError, ReplyEvent } from "./hub/reply";
import type { FittedWire } from "./hub/tools";
import type { Overview } from "./overview";

export type { Overview } from "./overview";

export interface Codec {
  /** @throws ProxyError `invalid_request` where the request asks nothing; it would be refused upstream. */
  checkRequest(body: JsonObject): void;
  /** Who speaks and what is shown, also of a request that cannot be decoded. */
  overview(body: JsonObject): Overview;
  /** @throws ProxyError `invalid_request` naming the field that cannot be read. */
  decodeRequest(body: unknown): Conversation;
  /**
   * The request in this dialect for this model. `dropped` names what the dialect or the model has no word for, as the
   * client spelt it (`top_k`, `tools[2]`).
   * @throws ProxyError `invalid_request` where leaving something out would change the meaning.
   */
  encodeRequest(
    conversation: Conversation,
    model: ModelFacts,
    options?: TranslationOptions,
  ): { body: JsonObject; dropped: string[] };
  /**
   * Headers that only this dialect has, for a body as it goes up.
   * @param client What the client sent; null when it spoke another dialect.
   */
  requestHeaders?(client: Headers | null, body: JsonObject, model: ModelFacts): HeaderFixup;
  /** The request without what only the account could read that made it; for a retry when the upstream says so. */
  repairRequest?(body: JsonObject): JsonObject;
  /** The request with tool schemas that are not refused; for a retry when one was. Undefined where there is nothing to mend. */
  repairTools(body: JsonObject): FittedWire | undefined;
  /** What the client calls its session, where the dialect has a word for it; read as it was sent. */
  session?(body: JsonObject): unknown;
  /** What a passthrough must know of the request to mend its reply. */
  replyContext(body: JsonObject): ReplyContext;
  /** The few edits a request of this dialect may need on its way to an upstream of the same dialect. */
  fixRequest(body: JsonObject, model: ModelFacts, options?: TranslationOptions): RequestFixup;

  /** A full reply. Never throws: what cannot be read ends in an `error` event. */
  decodeReply(body: unknown): ReplyEvent[];
  /** The events as one body, for the conversation that asked. Not for events that end in `error`: the caller looks first. */
  encodeReply(events: Iterable<ReplyEvent>, conversation: Conversation): JsonObject;
  /** The same body, or a fixed copy, and the names of the fixups. */
  fixReply(body: JsonObject, context: ReplyContext): { body: JsonObject; fixups: string[] };

  /** Frames to events, of the first of several replies if more than one was asked for. Keeps the grammar whatever the frames are; frames after the terminal one are ignored. */
  decodeStream(context?: Pick<ReplyContext, "replies">): Stage<SseFrame, ReplyEvent>;
  /** Events to frames, for the conversation that asked; the terminal frames follow `finish` or `error`. */
  encodeStream(conversation: Conversation): ToClient<ReplyEvent>;
  /** Frames to the same frames, but for the fixups; `fixed` is told each mend's name once. */
  fixStream(context: ReplyContext, onFixup: (name: string) => void): ToClient<SseFrame>;
  /**
   * Gathers the frames of a stream, up to its end, into what a full reply of the same words would be.
   * @param tell The names of what had to be fixed for it.
   */
  collectStream(tell: (fixup: string) => void): Collector;
  /** How a frame ends the stream, judged by itself: for frames that a decoder cannot follow. Undefined when it does not. */
  endIn?(frame: SseFrame): ReplyEvent | undefined;

  /** An error answer's body. */
  encodeError(error: ProxyError, requestId: string): JsonObject;
}

/** Takes the frames of a stream as the upstream sent them. */
export interface Collector {
  push(frame: SseFrame): void;
  /** The reply so far; of a stream that failed it is worth nothing. */
  body(): JsonObject;
}

/** What a passthrough knows of the request it answers. */
export interface ReplyContext {
  /** The model id the client used: replies carry it. */
  model: string;
  /** The client asked for the usage chunk of a chat stream. */
  usage: boolean;
  /** How many replies the client asked for (`n` of chat). */
  replies: number;
}

/** What the owner of the proxy decides about requests. */
export interface TranslationOptions {
  /** Tools that search the web are sent to an upstream that has them. */
  webSearch: boolean;
}

export interface HeaderFixup {
  headers: Record<string, string>;
  /** What we added of our own, for the history. */
  fixups: string[];
}

/** Top-level members of the client's JSON to set and to remove; every other byte stays as it is. */
export interface RequestFixup {
  set: JsonObject;
  remove: string[];
  /** The fixups' names, for the history. */
  fixups: string[];
  /** What was taken from who asked, or added; missing where nothing was. */
  dropped?: string[];
}

/** The client's end of a stream: besides what the upstream says there is silence to fill and failure to tell. */
export type ToClient<In> = (next: Sink<SseFrame>) => ClientSink<In>;

export interface ClientSink<In> extends Sink<In> {
  /** The upstream was silent for a while: say something the dialect's clients count as life and nothing else. */
  keepAlive(): void;
  /** The stream broke: end it with an error in the dialect's own words. After the terminal frame it does nothing. */
  fail(error: ReplyError): void;
}
