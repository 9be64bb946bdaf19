/**
 * The way of an answer to the client: one reader gives beats, stages hand them on, and one writer sends them. A client of the
 * upstream's dialect gets the upstream's own frames as long as no stage has changed a beat.
 */

import type { ClientCodec, ClientSink, FullReply, Passage, ToClient } from "../../dialects/codec";
import { AlikeEvents } from "../../dialects/hub/alike";
import { type Beat, full } from "../../dialects/hub/beat";
import type { Conversation } from "../../dialects/hub/conversation";
import { omitUndefined } from "../../dialects/hub/json";
import type { ReplyError, ReplyEvent, Usage } from "../../dialects/hub/reply";
import { separateTexts } from "../../dialects/hub/separate-texts";
import type { OfferedTools } from "../../dialects/hub/server-offers";
import { itemsIn } from "../../dialects/responses/references";
import { isObject, notJson, parseWithSource } from "../../lib/json";
import type { ResponseBody } from "../../lib/net/out/body";
import { readSse, type SseFrame } from "../../lib/net/stream/sse";
import type { Sink, Stage } from "../../lib/net/stream/stream";
import type { RequestScope } from "../scope";
import { openLoop } from "../server-tools/open-loop";
import type { Book } from "./book";
import { BrokenReply } from "./respond";
import { keepingItems } from "./restored-items";
import type { RunningRequest } from "./running-request";
import { toolContext } from "./searches";
import type { Answer, Reading, UpstreamReply } from "./upstream-call";

/** What is needed of a request for its reply: nothing of the prompt. */
interface Way {
  running: RunningRequest;
  /** Who answers, for messages: `GitHub Copilot`. */
  who: string;
  reader: ReplyReader;
  /** Missing where the upstream speaks another dialect, or the reply is always written anew. */
  passed?: Pick<Passage, "stream" | "free" | "full">;
  /** Missing where no stage changes a beat. */
  written?: {
    codec: ClientCodec;
    /** What a reply repeats of the request. */
    asked: Conversation;
    /** Reads the rough count of the prompt that was begun, once it is there. */
    estimate?(): number | undefined;
  };
  /** Tools that run while the model answers. */
  loop?: {
    plan: OfferedTools;
    parts: RequestScope;
    /** Asks the upstream to go on. */
    ask(conversation: Conversation): Promise<{ body: ResponseBody; reader: ReplyReader }>;
  };
}

export type ReplyReader = Pick<Passage, "readFull" | "readStream">;

export class ReplyWay implements UpstreamReply {
  /** Of the stream that is passed on. */
  #alike: AlikeEvents | undefined;

  constructor(private readonly way: Way) {}

  open(first: Answer, next: Sink<Beat>): Reading {
    const { loop, reader, running, who, written } = this.way;
    const events = new Recorded(running, written?.estimate ? withNumbers(running.book, written.estimate)(next) : next);
    if (loop) return this.#openLoop(loop, first, events);
    return { body: first.body, bytes: bytesInto(reader, who, first, events, this.#alike) };
  }

  #openLoop({ plan, parts, ask }: NonNullable<Way["loop"]>, first: Answer, events: Sink<Beat>): Reading {
    const { reader, running, who, written } = this.way;
    return openLoop(
      {
        offered: plan,
        context: () => toolContext(parts, running),
        ask: async (conversation, beats) => {
          running.book.askAgain();
          const { body, reader } = await ask(conversation);
          return { body, bytes: bytesInto(reader, who, { isStream: true }, beats) };
        },
        shape: written?.codec.facts.joinsTexts ? separateTexts : undefined,
      },
      { body: first.body, read: (beats) => bytesInto(reader, who, first, beats) },
      events,
    );
  }

  stream(out: Sink<SseFrame>): ClientSink<Beat> {
    const { passed, running, written } = this.way;
    const alike = written ? undefined : new AlikeEvents(out, passed!.free);
    const last = alike ?? out;
    const client = running.keepItem ? keepingItems(running.keepItem)(last) : last;
    this.#alike = alike;
    if (!written) return alike!.beforeWriter(passed!.stream(client));
    return passedUntilChanged(passed, written.codec.encodeStream(written.asked, written.estimate))(client);
  }

  full(): FullReply {
    return new FullAnswer(this.way);
  }
}

class FullAnswer implements FullReply {
  #gathered: FullReply | undefined;
  #error: ReplyError | undefined;
  /** Made where the reply may have to be written. */
  #events: ReplyEvent[] | undefined;

  constructor(private readonly way: Pick<Way, "passed" | "running" | "written">) {
    this.#gathered = way.passed?.full();
    if (way.written) this.#events = [];
  }

  push(beat: Beat): void {
    if (isChanged(beat)) this.#gathered = undefined;
    this.#gathered?.push(beat);
    if (this.#events) for (const event of beat.events) this.#events.push(event);
    const last = beat.events.at(-1);
    // The upstream's own text tells its error.
    if (last?.type === "error" && !(this.#gathered && beat.frame && beat.type === full)) this.#error = last;
  }

  end(): void {}

  text(): string {
    const { running, written } = this.way;
    if (this.#error) throw new BrokenReply(this.#error, running.book.earlyError === undefined);
    const text =
      this.#gathered?.text() ?? JSON.stringify(written!.codec.encodeReply(this.#events ?? [], written!.asked));
    if (running.keepItem) itemsIn(JSON.parse(text)).forEach(running.keepItem);
    return text;
  }
}

/**
 * Where the bytes of an answer go.
 * @param alike Takes events before they are read; where something is to be noticed, all are read.
 */
function bytesInto(
  reader: ReplyReader,
  who: string,
  { isStream, watch }: Omit<Answer, "body">,
  next: Sink<Beat>,
  alike?: AlikeEvents,
): Reading["bytes"] {
  if (!isStream) return new FullBytes(reader, who, watch, next);
  const frames = reader.readStream(next);
  if (watch) return readSse(watch.frames(frames));
  return readSse(alike ? alike.beforeReader(frames) : frames);
}

/** A full reply is one beat. */
class FullBytes implements Sink<Uint8Array> {
  #pieces: Uint8Array[] | undefined;

  constructor(
    private readonly reader: ReplyReader,
    private readonly who: string,
    private readonly watch: Answer["watch"],
    private readonly next: Sink<Beat>,
  ) {}

  push(piece: Uint8Array): void {
    this.#pieces ??= [];
    this.#pieces.push(piece);
  }

  end(): void {
    this.takeText(new TextDecoder().decode(Buffer.concat(this.#pieces ?? [])));
  }

  takeText(text: string): void {
    const { next, reader, watch, who } = this;
    // What is no object need not be parsed: a list that is nested a million times takes long.
    const json = /^\s*\{/.test(text) ? parseWithSource(text) : undefined;
    if (!isObject(json)) throw notJson(`${who}'s answer`);
    watch?.full(json);
    const { events, lost } = reader.readFull(json);
    next.push({ frame: { data: text, json }, type: full, json, isLast: true, events, lost });
    next.end();
  }
}

/** Whether the reply has to be written from this beat on. An error has no frame, and each writer has a form of its own for it. */
const isChanged = ({ frame, events }: Beat): boolean =>
  frame === undefined && events.length > 0 && events.at(-1)?.type !== "error";

/**
 * Passes on a stream up to the first beat that has changed, and writes it from there on; the writer has followed it by then.
 * @param pass Missing where all is written.
 */
const passedUntilChanged =
  (pass: Pick<Passage, "stream"> | undefined, write: ToClient<ReplyEvent>): ToClient<Beat> =>
  (out) => {
    let passed = pass?.stream(out);
    const writer = write({ push: (frame) => void (passed || out.push(frame)), end: () => out.end() });
    return {
      type: writer.type,
      push(beat) {
        if (isChanged(beat)) passed = undefined;
        passed?.push(beat);
        for (const event of beat.events) writer.push(event);
        if (passed && beat.frame) writer.follow?.(beat);
      },
      end: () => writer.end(),
      keepAlive: () => (passed ?? writer).keepAlive(),
      fail: (error) => (passed ?? writer).fail(error),
    };
  };

/** Adds each event to the book. What comes after it is for the client. */
class Recorded implements Sink<Beat> {
  constructor(
    private readonly running: RunningRequest,
    private readonly next: Sink<Beat>,
  ) {}

  push(beat: Beat): void {
    let changed: ReplyEvent[] | undefined;
    for (let at = 0; at < beat.events.length; at++) {
      const event = beat.events[at]!;
      if (event.type === "block-delta") continue;
      const told = this.running.addEvent(event);
      if (told === event) continue;
      changed ??= [...beat.events];
      changed[at] = told;
    }
    this.next.push(changed ? { ...beat, events: changed } : beat);
  }

  end(): void {
    this.next.end();
  }
}

/** Characters of a reply in a token, roughly. */
const charactersPerToken = 4;

/** The numbers that the client's dialect requires and the upstream has not reported: estimates, which the row marks. */
const withNumbers =
  (book: Book, estimateInput: () => number | undefined): Stage<Beat, Beat> =>
  (next) => {
    const reported: Partial<Usage> = {};
    let length = 0;
    const missing = (): ReplyEvent[] => {
      const usage: Partial<Usage> = {};
      if (reported.input === undefined) usage.input = estimateInput();
      if (reported.output === undefined) {
        usage.output = Math.ceil(length / charactersPerToken);
        book.setEstimate("estimatedOutput", usage.output);
      }
      return Object.keys(usage).length > 0 ? [{ type: "usage", usage: omitUndefined(usage) }] : [];
    };
    return {
      push(beat) {
        for (const event of beat.events)
          if (event.type === "block-delta") length += event.text.length;
          else if (event.type === "usage") Object.assign(reported, event.usage);
        const last = beat.events.at(-1);
        if (last?.type !== "finish") return next.push(beat);
        next.push({ ...beat, events: [...beat.events.slice(0, -1), ...missing(), last] });
      },
      end: () => next.end(),
    };
  };
