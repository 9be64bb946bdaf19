/**
 * How an upstream's stream is read. A dialect's normalizer comes first: it brings the frames into the grammar of the vendor's
 * own API, for replies that are translated, passed on and collected. What reads its events knows of no quirks.
 */
import { isObject } from "../../json";
import { editedTo } from "../../net/json/json-edit";
import { jsonOf, type SseFrame } from "../../net/stream/sse";
import type { Sink } from "../../net/stream/stream";
import type { ClientSink, Codec, Collector, ReplyContext } from "../codec";
import { cutReply, ReplyEmitter } from "./block-lifecycle";
import type { JsonObject } from "./conversation";
import { omit, textIn } from "./json";
import type { ReplyEvent, ReplyFailure } from "./reply";

type UpstreamEvent =
  | WireEvent
  | { kind: "comment"; frame: SseFrame }
  | /** Nothing follows it. */ { kind: "error"; error: ReplyFailure };

export interface WireEvent {
  kind: "event";
  type: string;
  /** What the frame holds, or a changed copy of it. */
  json: JsonObject;
  frame: SseFrame;
  /** Nothing follows it. */
  isLast: boolean;
  /** It could not be brought into the vendor's grammar: who passes it on leaves it as it is, who has to read it cannot. */
  isOdd?: true;
}

export type ReportFixup = (fixup: string) => void;

/** Brings the frames of a stream into the vendor's grammar. */
export abstract class Normalizer implements Sink<SseFrame> {
  /** The error for data that is no JSON object. */
  protected abstract readonly invalid: ReplyFailure;
  #ended = false;

  constructor(
    private readonly next: Sink<UpstreamEvent>,
    protected readonly report: ReportFixup,
    protected readonly context: ReplyContext,
  ) {}

  push(frame: SseFrame): void {
    const { data } = frame;
    if (this.#ended) this.readLate(frame);
    else if (data === undefined) this.next.push({ kind: "comment", frame });
    else if (data === "" || data === "[DONE]") this.readMark(data, frame);
    else {
      const json = jsonOf(frame);
      if (isObject(json)) this.readEvent(json, frame);
      else this.readUnparsed(frame);
    }
  }

  end(): void {
    if (!this.#ended) this.cut();
    this.next.end();
  }

  protected get ended(): boolean {
    return this.#ended;
  }

  protected abstract readEvent(json: JsonObject, frame: SseFrame): void;

  protected abstract readMark(data: "" | "[DONE]", frame: SseFrame): void;

  /** Reads data that is no JSON object. */
  protected readUnparsed(_frame: SseFrame): void {
    this.fail(this.invalid);
  }

  /** Reads what follows the end. */
  protected readLate(_frame: SseFrame): void {}

  /** Ends a stream that the upstream closed without a last event. */
  protected cut(): void {
    this.fail(cutReply);
  }

  protected emit(type: string, json: JsonObject, frame: SseFrame, isLast = false): void {
    this.#ended = isLast;
    this.next.push({ kind: "event", type, json, frame, isLast });
  }

  protected emitOdd(type: string, json: JsonObject, frame: SseFrame): void {
    this.next.push({ kind: "event", type, json, frame, isLast: false, isOdd: true });
  }

  protected fail(error: ReplyFailure): void {
    this.#ended = true;
    this.next.push({ kind: "error", error });
  }
}

/** Passes a normalized stream on to a client of its dialect, with the edits that only such a client needs. */
export abstract class PassedStream implements ClientSink<UpstreamEvent> {
  #ended = false;

  /** @param reader Reads each event before it is passed on. What it cannot follow is passed on all the same. */
  constructor(
    protected readonly next: Sink<SseFrame>,
    protected readonly report: ReportFixup,
    protected readonly context: ReplyContext,
    private readonly reader?: EventReader,
  ) {}

  push(event: UpstreamEvent): void {
    this.reader?.push(event);
    if (this.#ended) return;
    if (event.kind === "comment") this.next.push(event.frame);
    else if (event.kind === "error") this.fail(event.error);
    else {
      this.#ended = event.isLast;
      this.pass(event);
    }
  }

  fail(error: ReplyFailure): void {
    if (this.#ended) return;
    this.#ended = true;
    this.writeError(error);
  }

  keepAlive(): void {
    if (!this.#ended) this.writeBeat();
  }

  end(): void {
    this.reader?.end();
    this.next.end();
  }

  protected abstract pass(event: WireEvent): void;
  protected abstract writeError(error: ReplyFailure): void;
  protected abstract writeBeat(): void;
}

/** The frame of an event: the very one that arrived unless something has changed, and then only those bytes differ. */
export function frameOf(frame: SseFrame, json: JsonObject, event = frame.event): SseFrame {
  const before = jsonOf(frame);
  if (json === before && event === frame.event) return frame;
  const { data = "" } = frame;
  const edited = json === before || !isObject(before) ? data : editedTo(data, before, json);
  return event === undefined ? { data: edited } : { event, data: edited };
}

/**
 * Gets the name of the note of a reply that cannot be followed. From there on its reader leaves out the blocks, and reads usage
 * and end. A reader without one ends such a reply with an error: who needs what was said must not take it for complete.
 */
export type ReadsAlong = (note: string) => void;

/** The note of a reply in which something stands that its reader cannot follow. */
const unfollowed = "reply-unfollowed";

/** Reads the events of a normalized stream. */
export abstract class EventReader implements Sink<UpstreamEvent> {
  protected readonly writer: ReplyEmitter;

  constructor(
    private readonly next: Sink<ReplyEvent>,
    private readonly along?: ReadsAlong,
  ) {
    this.writer = new ReplyEmitter(next);
  }

  get ended(): boolean {
    return this.writer.ended;
  }

  push(event: UpstreamEvent): void {
    if (this.ended) return;
    if (event.kind === "event") {
      if (event.isOdd) this.cannotFollow();
      this.read(event.type, event.json);
    } else if (event.kind === "error") this.fail(event.error);
  }

  end(): void {
    this.next.end();
  }

  /** The error for an event that is none of the dialect. */
  protected abstract readonly invalid: ReplyFailure;

  protected abstract read(type: string, json: JsonObject): void;

  fail(error: ReplyFailure): void {
    this.writer.error(error);
  }

  /** To be called for an event that the reader cannot understand. */
  protected cannotFollow(): void {
    if (this.ended) return;
    if (this.along) {
      this.writer.leaveOutBlocks();
      this.along(unfollowed);
    } else this.fail(this.invalid);
  }
}

/** What a dialect knows of an upstream's reply. */
interface ReplyParts {
  Normalizer: new (next: Sink<UpstreamEvent>, report: ReportFixup, context: ReplyContext) => Normalizer;
  Reader: new (next: Sink<ReplyEvent>, along?: ReadsAlong) => EventReader;
  Passed: new (next: Sink<SseFrame>, report: ReportFixup, context: ReplyContext, reader?: EventReader) => PassedStream;
  Collected: new () => { read(event: WireEvent): void; body(): JsonObject };
  /** The edits of a full reply; the same object if it needs none. */
  fixFull(body: JsonObject, context: ReplyContext, report: ReportFixup): JsonObject;
}

const plainContext: ReplyContext = { model: "", usage: true, replies: 1 };

/** The fixups of a stream's form, which the full reply made of it does not show. */
const ofStreams: ReadonlySet<string> = new Set([
  ...["foreign-event", "error-event", "empty-data", "done-event", "tool-index", "item-ids", "response-id"],
]);

type ReplyCodec = Pick<Codec, "replyContext" | "decodeStream" | "fixStream" | "collectStream" | "fixReply">;

/** The ways of an upstream's reply: a stream is translated, passed on, or collected; a full reply is passed on. */
export const repliesOf = (parts: ReplyParts): ReplyCodec => ({
  replyContext: ({ model }) => ({ ...plainContext, model: textIn(model) }),
  decodeStream:
    (context = plainContext, along) =>
    (next) =>
      new parts.Normalizer(new parts.Reader(next, along), () => {}, context),
  fixStream: (context, onFixup, events) => (next) => passing(parts, next, context, onFixup, events),
  collectStream: (onFixup, events, context = plainContext) => collecting(parts, context, onFixup, events),
  fixReply: parts.fixFull,
});

function passing(
  parts: ReplyParts,
  next: Sink<SseFrame>,
  context: ReplyContext,
  report: ReportFixup,
  events?: Sink<ReplyEvent>,
): ClientSink<SseFrame> {
  const client = new parts.Passed(next, report, context, events && new parts.Reader(events, report));
  const normalizer = new parts.Normalizer(client, report, context);
  return {
    push: (frame) => normalizer.push(frame),
    end: () => normalizer.end(),
    keepAlive: () => client.keepAlive(),
    fail: (error) => client.fail(error),
  };
}

function collecting(
  parts: ReplyParts,
  context: ReplyContext,
  onFixup: ReportFixup,
  events?: Sink<ReplyEvent>,
): Collector {
  const collector = new parts.Collected();
  const reader = events && new parts.Reader(events);
  const both: Sink<UpstreamEvent> = {
    push(event) {
      reader?.push(event);
      if (event.kind === "event") collector.read(event);
    },
    end: () => reader?.end(),
  };
  const report = (fixup: string) => void (ofStreams.has(fixup) || onFixup(fixup));
  const normalizer = new parts.Normalizer(both, report, context);
  return {
    push: (frame) => normalizer.push(frame),
    end: () => normalizer.end(),
    body: () => collector.body(),
  };
}

/** The reply, or an event of it, without Copilot's own fields, which strict clients do not expect. */
export function withoutCopilot(object: JsonObject, report: ReportFixup): JsonObject {
  let own: Set<string> | undefined;
  for (const key in object) if (key.startsWith("copilot_")) own = (own ?? new Set()).add(key);
  if (!own) return object;
  report("copilot-fields");
  return omit(object, own) ?? {};
}

/** The reply with the model's name as the client wrote it. */
export function withModel(reply: JsonObject, { model }: ReplyContext, report: ReportFixup): JsonObject {
  if (typeof reply.model !== "string" || reply.model === model) return reply;
  report("model-name");
  return { ...reply, model };
}
