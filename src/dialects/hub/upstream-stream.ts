/**
 * How an upstream's stream is read. A dialect's normalizer comes first: it brings the frames into the grammar of the vendor's
 * own API, for replies that are translated, passed on and collected. What reads its events knows of no quirks.
 */
import { isObject } from "../../lib/json";
import { editedTo } from "../../lib/net/json/json-edit";
import { jsonOf, type SseFrame } from "../../lib/net/stream/sse";
import { run, type Sink } from "../../lib/net/stream/stream";
import type { ClientSink, Codec, FullReply, Passage, ReplyContext } from "../codec";
import type { FreeMembers } from "./alike-parts";
import { AlikeTexts } from "./alike-texts";
import { type Beat, comment, type FramedBeat, followed, full, said } from "./beat";
import { cutReply, ReplyEmitter } from "./block-lifecycle";
import type { JsonObject } from "./conversation";
import { omit, textIn } from "./json";
import { type Notes, unnoted } from "./notes";
import type { ReplyEvent, ReplyFailure } from "./reply";

/** Where the frames of a normalizer go, of which nobody has read yet what they say. */
interface Normalized {
  push(beat: FramedBeat): void;
  /** Nothing follows. */
  fail(error: ReplyFailure): void;
  end(): void;
}

/** Brings the frames of a stream into the vendor's grammar. */
export abstract class Normalizer implements Sink<SseFrame> {
  /** The error for data that is no JSON object. */
  protected abstract readonly invalid: ReplyFailure;
  #ended = false;

  constructor(
    private readonly next: Normalized,
    protected readonly notes: Notes,
    protected readonly context: ReplyContext,
  ) {}

  push(frame: SseFrame): void {
    const { data } = frame;
    if (this.#ended) this.readLate(frame);
    else if (data === undefined) this.next.push({ frame, type: comment, json: nothing, isLast: false, events: none });
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
    this.next.push({ frame, type, json, isLast, events: none });
  }

  protected emitOdd(type: string, json: JsonObject, frame: SseFrame): void {
    this.next.push({ frame, type, json, isLast: false, isOdd: true, events: none });
  }

  protected fail(error: ReplyFailure): void {
    this.#ended = true;
    this.next.fail(error);
  }
}

/** Passes a stream on to a client of its dialect, with the edits that only such a client needs. */
export abstract class PassedStream implements ClientSink<Beat> {
  #ended = false;

  constructor(
    protected readonly next: Sink<SseFrame>,
    protected readonly notes: Notes,
    protected readonly context: ReplyContext,
  ) {}

  push(beat: Beat): void {
    if (beat.lost) this.notes.addFixup(unfollowed);
    if (this.#ended) return;
    if (beat.frame) {
      this.#ended = beat.isLast;
      if (beat.type === comment) this.next.push(beat.frame);
      else this.pass(beat);
      return;
    }
    const last = beat.events.at(-1);
    if (last?.type === "error") this.fail(last);
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
    this.next.end();
  }

  protected abstract pass(beat: FramedBeat): void;
  protected abstract writeError(error: ReplyFailure): void;
  protected abstract writeBeat(): void;
}

/** The frame to send: the very one that arrived unless something has changed, and then only those bytes differ. */
export function frameOf(sent: SseFrame, json: JsonObject, event = sent.event): SseFrame {
  const before = jsonOf(sent);
  if (json === before && event === sent.event) return sent;
  const { data = "" } = sent;
  const edited = json === before || !isObject(before) ? data : editedTo(data, before, json);
  return event === undefined ? { data: edited } : { event, data: edited };
}

/** The note of a reply in which something stands that its reader cannot follow. */
export const unfollowed = "reply-unfollowed";

/** Reads the frames of a normalized stream. */
export abstract class EventReader implements Normalized {
  protected readonly writer = new ReplyEmitter();
  #lost: Beat["lost"];
  #hasLost = false;

  constructor(private readonly next: Sink<Beat>) {}

  protected get ended(): boolean {
    return this.writer.ended;
  }

  push(beat: FramedBeat): void {
    if (beat.type !== comment && !this.ended) {
      if (beat.isOdd) this.cannotFollow();
      this.read(beat.type, beat.json);
      beat.events = this.writer.take() ?? none;
      if (this.#lost) {
        beat.lost = this.#lost;
        this.#lost = undefined;
      }
    }
    this.next.push(beat);
  }

  fail(error: ReplyFailure): void {
    this.failed(error);
    this.next.push(this.take());
  }

  end(): void {
    this.next.end();
  }

  /** What a full reply says. */
  full(body: unknown): Pick<Beat, "events" | "lost"> {
    this.readReply(body);
    return this.take();
  }

  private take(): Beat {
    return { events: this.writer.take() ?? none, lost: this.#lost };
  }

  /** Characters of the open text came and were not read. */
  heard(_length: number): void {}

  protected failed(error: ReplyFailure): void {
    if (this.ended) return;
    this.settle();
    this.writer.error(error);
  }

  /** The error for an event that is none of the dialect. */
  protected abstract readonly invalid: ReplyFailure;

  protected abstract read(type: string, json: JsonObject): void;

  /** Reads a full reply; a body that is none has failed. */
  protected abstract readReply(body: unknown): void;

  /** Writes what is known before the reply ends in the middle. */
  protected settle(): void {}

  /** To be called for an event that the reader cannot understand: it leaves out the blocks from there on. */
  protected cannotFollow(error = this.invalid): void {
    if (this.ended || this.#hasLost) return;
    this.settle();
    this.writer.leaveOutBlocks();
    this.#hasLost = true;
    this.#lost = { error, after: this.writer.count };
  }
}

/** What a dialect knows of an upstream's reply. */
interface ReplyParts {
  Normalizer: new (next: Normalized, notes: Notes, context: ReplyContext) => Normalizer;
  Reader: new (next: Sink<Beat>) => EventReader;
  Passed: new (next: Sink<SseFrame>, notes: Notes, context: ReplyContext) => PassedStream;
  /** As in {@link Passage}. */
  free: FreeMembers;
  Collected: new () => { read(beat: FramedBeat): void; body(): JsonObject };
  /** What passing a reply on needs to know of the request, where it is more than the model. */
  contextOf?(request: JsonObject): ReplyContext;
  /** The edits of a full reply; the same object if it needs none. */
  fixFull(body: JsonObject, context: ReplyContext, notes: Notes): JsonObject;
}

const nowhere: Sink<unknown> = { push() {}, end() {} };
const nothing: JsonObject = {};
const none: readonly ReplyEvent[] = [];

/** The fixups of a stream's form, which the full reply made of it does not show. */
const ofStreams: ReadonlySet<string> = new Set([
  ...["foreign-event", "error-event", "empty-data", "done-event", "tool-index", "item-ids", "response-id"],
]);

const shownWhole = (notes: Notes): Notes => ({
  addFixup: (name) => void (ofStreams.has(name) || notes.addFixup(name)),
  addDropped: (name) => notes.addDropped(name),
});

/** How an upstream's reply is read, and passed on to a client of its dialect. */
export function repliesOf(parts: ReplyParts): Pick<Codec, "decodeReply" | "decodeStream" | "passOn"> {
  return {
    decodeReply: (body) => run(said, [new parts.Reader(nowhere).full(body)]),
    decodeStream: () => (next) => new AlikeTexts(next, parts.free.text, (beats) => textReaderOf(parts, beats)),
    passOn(request, notes, isGathered = false) {
      const context = parts.contextOf?.(request) ?? { model: textIn(request.model), usage: true, replies: 1 };
      return new PassedReply(parts, context, notes, isGathered);
    },
  };
}

function textReaderOf(parts: ReplyParts, next: Sink<Beat>) {
  const reader = new parts.Reader(next);
  const frames = new parts.Normalizer(reader, unnoted, { model: "", usage: true, replies: 1 });
  return { frames, heard: (length: number) => reader.heard(length) };
}

const readingOf = (parts: ReplyParts, next: Sink<Beat>, notes: Notes, context: ReplyContext): Sink<SseFrame> =>
  new parts.Normalizer(new parts.Reader(next), notes, context);

class PassedReply implements Passage {
  constructor(
    private readonly parts: ReplyParts,
    private readonly context: ReplyContext,
    private readonly notes: Notes,
    private readonly isGathered: boolean,
  ) {}

  readFull(body: unknown): Pick<Beat, "events" | "lost"> {
    return new this.parts.Reader(nowhere).full(body);
  }

  readStream(next: Sink<Beat>): Sink<SseFrame> {
    const { parts, context, notes, isGathered } = this;
    if (!isGathered) return readingOf(parts, next, notes, context);
    return readingOf(parts, followed(next), shownWhole(notes), context);
  }

  stream(next: Sink<SseFrame>): ClientSink<Beat> {
    return new this.parts.Passed(next, this.notes, this.context);
  }

  get free(): FreeMembers {
    return this.parts.free;
  }

  full(): FullReply {
    return new PassedFull(this.parts, this.context, this.notes);
  }
}

/** A full reply with the upstream's own text, changed by the fixups only; or all of a stream. */
class PassedFull implements FullReply {
  #collected: InstanceType<ReplyParts["Collected"]> | undefined;
  #whole: FramedBeat | undefined;

  constructor(
    private readonly parts: ReplyParts,
    private readonly context: ReplyContext,
    private readonly notes: Notes,
  ) {}

  push(beat: Beat): void {
    if (beat.lost) this.notes.addFixup(unfollowed);
    if (!beat.frame || beat.type === comment) return;
    if (beat.type === full) this.#whole = beat;
    else {
      this.#collected ??= new this.parts.Collected();
      this.#collected.read(beat);
    }
  }

  end(): void {}

  text(): string {
    const { context, notes, parts } = this;
    if (!this.#whole) {
      const collected = this.#collected ?? new parts.Collected();
      return JSON.stringify(parts.fixFull(collected.body(), context, notes));
    }
    const { frame, json } = this.#whole;
    const { data = "" } = frame;
    const fixed = parts.fixFull(json, context, notes);
    return fixed === json ? data : editedTo(data, json, fixed);
  }
}

/** The reply, or an event of it, without Copilot's own fields, which strict clients do not expect. */
export function withoutCopilot(object: JsonObject, notes: Notes): JsonObject {
  let own: Set<string> | undefined;
  for (const key in object) if (key.startsWith("copilot_")) own = (own ?? new Set()).add(key);
  if (!own) return object;
  notes.addFixup("copilot-fields");
  return omit(object, own) ?? {};
}

/** The reply with the model's name as the client wrote it. */
export function withModel(reply: JsonObject, { model }: ReplyContext, notes: Notes): JsonObject {
  if (typeof reply.model !== "string" || reply.model === model) return reply;
  notes.addFixup("model-name");
  return { ...reply, model };
}
