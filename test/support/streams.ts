/** Fixtures, and streams as they travel. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Codec, ToClient } from "../../src/dialects/codec";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { gatherFrames, readSse, type SseFrame } from "../../src/net/stream/sse";
import { collectInto, pipe, run } from "../../src/net/stream/stream";

export const fixtures = join(import.meta.dir, "../fixtures");

export const hasFixture = (folder: string, file: string) => existsSync(join(fixtures, folder, file));
export const jsonAt = (folder: string, file: string) => JSON.parse(readFileSync(join(fixtures, folder, file), "utf8"));
export const bytesAt = (folder: string, file: string) => new Uint8Array(readFileSync(join(fixtures, folder, file)));

/** What reads a stream: a codec, or a reader of a dialect that only clients speak. */
type Reader = Pick<Codec, "decodeStream">;

export function decode(codec: Reader, chunks: Iterable<Uint8Array>): ReplyEvent[] {
  return run(pipe(readSse, codec.decodeStream()), chunks);
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
