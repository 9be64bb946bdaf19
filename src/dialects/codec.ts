/** The interfaces of a dialect. */
import type { ProxyError } from "../lib/errors";
import type { SseFrame } from "../lib/net/stream/sse";
import type { Sink, Stage } from "../lib/net/stream/stream";
import type { FreeMembers } from "./hub/alike-parts";
import type { Beat, FramedBeat } from "./hub/beat";
import type { Conversation, Dialect, JsonObject } from "./hub/conversation";
import type { KnownNames } from "./hub/known-names";
import type { ModelFacts } from "./hub/model";
import type { Notes } from "./hub/notes";
import type { SchemaPlaces } from "./hub/refused-schemas";
import type { ReplyError, ReplyEvent } from "./hub/reply";
import type { Outline } from "./overview";

/** What a dialect's clients need: their requests are read, and replies and errors are written. */
export interface ClientCodec {
  facts: ClientFacts;
  /** @throws ProxyError `invalid_request` if the request is empty and would be refused upstream. */
  checkRequest(body: JsonObject): void;
  /** How a conversation is summarized, if the dialect has a request for that. */
  compaction?: CompactionCodec;
  outline(body: JsonObject): Outline;
  /** @throws ProxyError `invalid_request` naming the field that cannot be read. */
  decodeRequest(body: unknown): Conversation;

  /** Writes a full reply to this conversation. The events must not end in `error`: the caller checks that first. */
  encodeReply(events: Iterable<ReplyEvent>, conversation: Conversation): JsonObject;
  /**
   * Writes events as frames of a reply to this conversation; `finish` or `error` writes the terminal frames.
   * @param estimate An estimate of the input tokens, if there is one by now; used where the facts have `startsWithUsage`.
   */
  encodeStream(conversation: Conversation, estimate?: () => number | undefined): ToClient<ReplyEvent>;

  /** The body of an error response. */
  encodeError(error: ProxyError, requestId: string): JsonObject;
}

/** What is known of a dialect's clients and of its wire. */
interface ClientFacts {
  /** The upstreams' dialects, the most faithful first; the first one that the model offers is used. */
  upstreams: readonly Dialect[];
  /** Bytes of a stream for one token of the answer, roughly, as in recorded streams. */
  streamBytesPerToken: number;
  /**
   * The status at which the clients show our message after one request. Measured by test/clients/refused.ts;
   * test/clients/README.md has the table.
   */
  shownAtOnce: number;
  /** Statuses that the clients retry, or replace by a message of their own. */
  hiddenStatuses: ReadonlySet<number>;
  /** Clients see all texts of a reply as one. */
  joinsTexts?: true;
  /** A stream begins with the number of input tokens, before the upstream has reported it. */
  startsWithUsage?: true;
}

/** A dialect's own endpoint that counts tokens. */
export interface TokenCountFormat {
  /** @throws ProxyError `invalid_request` naming the field that cannot be read. */
  decode(body: JsonObject): Conversation;
  /** The body of the answer. */
  encode(tokens: number): JsonObject;
}

/** A dialect that upstreams speak too. */
export interface Codec extends ClientCodec {
  /**
   * The request in this dialect for this model. What the dialect or the model does not have is noted as dropped.
   * @throws ProxyError `invalid_request` where leaving something out would change the meaning.
   */
  encodeRequest(conversation: Conversation, model: ModelFacts, options?: TranslationOptions): JsonObject;
  /**
   * Headers of this dialect for the body that is sent upstream.
   * @param client The client's headers; null if it used another dialect.
   */
  requestHeaders?(
    client: Headers | null,
    body: JsonObject,
    model: ModelFacts,
    options?: TranslationOptions,
  ): Record<string, string>;
  /** How a request is changed after it was refused. */
  remedies: RequestRemedies;
  /** Where requests have the schemas of tools and of the reply. */
  schemas: SchemaPlaces;
  /** What upstreams are known to send. */
  knownNames(): KnownNames;
  /** A passed-through request as its upstream takes it: the same body, or a copy with the fixups. */
  fixRequest(body: JsonObject, model: ModelFacts, options?: TranslationOptions): JsonObject;

  /** Reads a full reply. Never throws: a body that is unreadable or cannot be followed gives an `error` event. */
  decodeReply(body: unknown): ReplyEvent[];
  /** Reads frames, and what they say of the first reply if several were requested. Frames after the terminal one are ignored. */
  decodeStream(): Stage<SseFrame, Beat>;
  /**
   * How the reply to this request is passed on to a client of the dialect.
   * @param isGathered The upstream's stream becomes a full reply.
   */
  passOn(request: JsonObject, notes: Notes, isGathered?: boolean): Passage;
  /** How this frame ends the stream, judged without earlier frames; undefined if it does not. */
  endIn?(frame: SseFrame): ReplyEvent | undefined;
}

interface RequestRemedies {
  /**
   * The request without what may be bound to another account, or to another conversation; the same body if it has none.
   * @param isForeign Asked of each mark of such data: a signature, an encrypted content, the id of an item.
   */
  repair(body: JsonObject, isForeign: (mark: string) => boolean): JsonObject;
  /** The top-level fields to set where a forced call was refused; undefined if the request forces none. */
  freeChoice?(body: JsonObject): JsonObject | undefined;
  /** The same where system messages within the conversation were refused; undefined if it has none. */
  foldSystem?(body: JsonObject): JsonObject | undefined;
}

/** How a conversation is summarized: by an upstream of the dialect itself, or in words by any model. */
export interface CompactionCodec {
  /** What asks an upstream of the dialect for a summary: the name under which its refusal is remembered. */
  trigger: string;
  /** Makes of the upstream's own summary the reply that the client expects. */
  reply: Stage<ReplyEvent, ReplyEvent>;
  /** Whether this event of that reply says that the upstream does not know what it was asked for. */
  isNotMade(event: ReplyEvent): boolean;
  inWords: {
    /** The request to the model; undefined if the body does not ask for a summary. @throws ProxyError `invalid_request`. */
    request(body: JsonObject): JsonObject | undefined;
    /** Makes of the model's reply the one that the client expects. */
    reply: Stage<ReplyEvent, ReplyEvent>;
  };
}

/** The reader and the writers of a reply that is passed on: they write nothing but an error where there is no frame. */
export interface Passage {
  /** Reads a full reply; one that cannot be followed is passed on all the same. */
  readFull(body: unknown): Pick<Beat, "events" | "lost">;
  /** Reads a stream, as `decodeStream`. One that is gathered ends with an error where it cannot be followed. */
  readStream(next: Sink<Beat>): Sink<SseFrame>;
  stream(next: Sink<SseFrame>): ClientSink<Beat>;
  /** Find what differs between a stream's events of text, and between its pieces of calls. */
  readonly free: FreeMembers;
  full(): FullReply;
}

/** Makes one full reply of all its beats. */
export interface FullReply extends Sink<Beat> {
  /** The text for the client; useless if the reply failed. */
  text(): string;
}

/** What a passed-through reply needs to know about its request. */
export interface ReplyContext {
  /** The model id that the client sent: replies carry it. */
  model: string;
  /** Whether the client requested the usage chunk of a chat stream. */
  usage: boolean;
  /** The number of requested replies (`n` of the chat dialect). */
  replies: number;
}

/** What the configuration says about requests. */
export interface TranslationOptions {
  /** Web search tools are sent to upstreams that have them. */
  webSearch: boolean;
  /** Betas that the model is known to refuse: neither they nor their fields are sent. */
  refusedBetas?: readonly string[];
  /** The upstream's prompt cache may keep a prompt for an hour, which costs more to write. */
  hourCache?: boolean;
  /** What is added for the upstream's prompt cache; nothing if undefined. */
  cache?: CacheHints;
  /** Gets the names of what is changed in the request and its headers, and of what is left out. */
  notes?: Notes;
}

/** What an upstream's prompt cache needs and the client's dialect has no field for. */
export interface CacheHints {
  /** Requests with the same key are likely to find each other's prompts. */
  key?: string;
  /** The client cannot mark the parts of the prompt that are worth caching. */
  marks: boolean;
}

/** The client's side of a stream, which also fills silence and reports failure. */
export type ToClient<In> = (next: Sink<SseFrame>) => ClientSink<In>;

export interface ClientSink<In> extends Sink<In> {
  /** The content type, if it is not an event stream. */
  readonly type?: string;
  /** Told of each frame that the client got in place of what was written, before all that follows is written. */
  follow?(passed: FramedBeat): void;
  /** Called when the upstream is silent: writes what clients count as activity and nothing else. */
  keepAlive(): void;
  /** Ends the stream with an error of the dialect. Does nothing after the terminal frame. */
  fail(error: ReplyError): void;
}
