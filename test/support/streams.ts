/** Fixtures, and streams as they travel. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Codec, ReplyContext, ToClient } from "../../src/dialects/codec";
import { type Beat, full as fullType, said } from "../../src/dialects/hub/beat";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { unnoted } from "../../src/dialects/hub/notes";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { gatherFrames, readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { collectInto, pipe, run, type Sink, type Stage } from "../../src/lib/net/stream/stream";

export const fixtures = join(import.meta.dir, "../fixtures");

export const hasFixture = (folder: string, file: string) => existsSync(join(fixtures, folder, file));
export const jsonAt = (folder: string, file: string) => JSON.parse(readFileSync(join(fixtures, folder, file), "utf8"));
export const bytesAt = (folder: string, file: string) => new Uint8Array(readFileSync(join(fixtures, folder, file)));

/** All `<dialect>.<file>` of the fixtures, and `<file>` where the folder is named after the dialect. */
export const recorded = (dialect: string, file: string): [folder: string, file: string][] =>
  readdirSync(fixtures).flatMap((folder) =>
    [`${dialect}.${file}`, ...(folder.startsWith(`${dialect}-`) ? [file] : [])]
      .filter((each) => hasFixture(folder, each))
      .map((each): [string, string] => [folder, each]),
  );

/** What reads a stream: a codec, or a reader of a dialect that only clients speak. */
type Reader = Pick<Codec, "decodeStream">;
type Note = (name: string) => void;

/** What frames say, for who needs all of it. */
export const reads = (codec: Reader): Stage<SseFrame, ReplyEvent> => pipe(codec.decodeStream(), said);

/** Passes frames on to a client of their dialect. @param events Gets what they say. */
export const passes =
  (codec: Codec, context: ReplyContext, note: Note, events?: Sink<ReplyEvent>): ToClient<SseFrame> =>
  (next) => {
    const passage = codec.passOn(requestOf(context), { ...unnoted, addFixup: note });
    const client = passage.stream(next);
    const reader = passage.readStream(told(client, events));
    return {
      push: (frame) => reader.push(frame),
      end: () => reader.end(),
      keepAlive: () => client.keepAlive(),
      fail: (error) => client.fail(error),
    };
  };

/** Gathers frames to a full reply. @param events Gets what they say. */
export function collects(codec: Codec, note: Note, events?: Sink<ReplyEvent>, context = noContext) {
  const passage = codec.passOn(requestOf(context), { ...unnoted, addFixup: note }, true);
  const reply = passage.full();
  const reader = passage.readStream(told(reply, events));
  return {
    push: (frame: SseFrame) => reader.push(frame),
    end: () => reader.end(),
    body: (): JsonObject => JSON.parse(reply.text()),
  };
}

/** A full reply as it is passed on: the same object if its text is the same. */
export function passesFull(codec: Codec, body: JsonObject, context: ReplyContext, note: Note): JsonObject {
  const reply = codec.passOn(requestOf(context), { ...unnoted, addFixup: note }).full();
  const data = JSON.stringify(body);
  reply.push({ frame: { data, json: body }, type: fullType, json: body, isLast: true, events: [] });
  const text = reply.text();
  return text === data ? body : JSON.parse(text);
}

const noContext: ReplyContext = { model: "", usage: true, replies: 1 };

/** A request of this context. */
const requestOf = ({ model, usage, replies }: ReplyContext): JsonObject => ({
  model,
  stream_options: { include_usage: usage },
  n: replies,
});

/** @param events Without it nobody reads along, who could not follow. */
const told = (next: Sink<Beat>, events: Sink<ReplyEvent> | undefined): Sink<Beat> => ({
  push(beat) {
    for (const event of beat.events) events?.push(event);
    next.push(events ? beat : { ...beat, lost: undefined });
  },
  end() {
    events?.end();
    next.end();
  },
});

export function decode(codec: Reader, chunks: Iterable<Uint8Array>): ReplyEvent[] {
  return run(pipe(readSse, reads(codec)), chunks);
}

export function decodeFrames(codec: Reader, frames: SseFrame[]): ReplyEvent[] {
  return decode(codec, [wire(frames)]);
}

/** What goes to the client of these items; `between` may speak up after each of them. */
export function written<In>(
  toClient: ToClient<In>,
  items: In[],
  between?: (client: ReturnType<ToClient<In>>, index: number) => void,
): SseFrame[] {
  const frames: SseFrame[] = [];
  const client = toClient(collectInto(frames));
  items.forEach((item, index) => {
    client.push(item);
    between?.(client, index);
  });
  client.end();
  return frames;
}

export function wire(frames: SseFrame[]): Uint8Array {
  const gathered = gatherFrames();
  for (const frame of frames) gathered.push(frame);
  const bytes = gathered.take();
  return bytes ? new Uint8Array(bytes) : new Uint8Array();
}

/** The frames as the client reads them. */
export function overWire(frames: SseFrame[]): SseFrame[] {
  return run(readSse, [wire(frames)]);
}

/** The frames of the stream cut at every byte; cuts that leave the same frames are one. */
export function cutsOf(stream: Uint8Array): SseFrame[][] {
  const cuts: SseFrame[][] = [];
  for (let length = 0; length < stream.length; length++) {
    const cut = run(readSse, [stream.subarray(0, length)]);
    const last = cuts.at(-1);
    // Frames before the cut do not change any more: only their number and the last one tell.
    if (!last || cut.length !== last.length || cut.at(-1)?.data !== last.at(-1)?.data) cuts.push(cut);
  }
  return cuts;
}

export function chunksOf(all: Uint8Array, size: number): Uint8Array[] {
  if (size >= all.length) return [all];
  return Array.from({ length: Math.ceil(all.length / size) }, (_, index) =>
    all.slice(index * size, (index + 1) * size),
  );
}
