/** Property: server-sent events, read and written in chunks of any size. */

import { expect, test } from "bun:test";
import { gatherFrames, jsonOf, readSse, type SseFrame } from "../../../src/lib/net/stream/sse";
import { run } from "../../../src/lib/net/stream/stream";
import { chunkSizes } from "../../support/differential";

const bytes = (text: string) => new TextEncoder().encode(text);
const read = (text: string, size = Number.POSITIVE_INFINITY) => run(readSse, chunksOf(bytes(text), size));
const meaning = (frames: SseFrame[]) =>
  frames
    .filter((frame) => frame.data !== undefined || frame.event !== undefined)
    .map(({ event, data }) => ({ event, data }));

function chunksOf(all: Uint8Array, size: number): Uint8Array[] {
  if (size >= all.length) return [all];
  return Array.from({ length: Math.ceil(all.length / size) }, (_, index) =>
    all.slice(index * size, (index + 1) * size),
  );
}

const stream = `: welcome\n\nevent: ping\ndata: {"type":"ping"}\n\ndata: {"text":"größe 字 🎈"}\n\ndata: one\ndata: two\n\nid: 7\nretry: 10\ndata:tight\n\ndata: [DONE]\n\n`;
const meant = [
  { event: "ping", data: '{"type":"ping"}' },
  { event: undefined, data: '{"text":"größe 字 🎈"}' },
  { event: undefined, data: "one\ntwo" },
  { event: undefined, data: "tight" },
  { event: undefined, data: "[DONE]" },
];

for (const [name, ending] of [
  ["LF", "\n"],
  ["CRLF", "\r\n"],
  ["CR", "\r"],
] as const)
  test(`${name} line ends, cut into chunks of any size, mean the same`, () => {
    const text = stream.replaceAll("\n", ending);
    for (const size of chunkSizes) expect(meaning(read(text, size))).toEqual(meant);
    expect(meaning(read(text))).toEqual(meant);
  });

test("mixed line ends and a byte order mark mean the same", () => {
  let turn = 0;
  const text = `\uFEFF${stream.replaceAll("\n", () => ["\n", "\r\n"][turn++ % 2]!)}`;
  for (const size of chunkSizes) expect(meaning(read(text, size))).toEqual(meant);
});

test("a stream cut at any byte gives only whole frames, in order", () => {
  const all = bytes(stream);
  for (let length = 0; length < all.length; length++) {
    const frames = meaning(run(readSse, [all.slice(0, length)]));
    const whole = frames.filter((frame) => meant.some((other) => Bun.deepEquals(other, frame)));
    expect(frames.length - whole.length).toBeLessThanOrEqual(0);
    expect(meant.slice(0, frames.length)).toEqual(frames as typeof meant);
  }
});

test("a last frame without a blank line counts when its data is whole", () => {
  expect(meaning(read('data: {"a":1}\n'))).toEqual([{ event: undefined, data: '{"a":1}' }]);
  expect(meaning(read("data: [DONE]"))).toEqual([{ event: undefined, data: "[DONE]" }]);
  expect(meaning(read('data: {"a":'))).toEqual([]);
});

test("blank lines before a frame are one, however many there are", () => {
  expect(["\n", "\r", "\r\n"].map((end) => read(`${end.repeat(100)}data: 1\n\n`).length)).toEqual([2, 2, 2]);
});

test("a bare JSON error without `data:` is a frame", () => {
  expect(jsonOf(read('data: {"a":1}\n\n{"error":{"message":"gone"}}\n')[1]!)).toEqual({ error: { message: "gone" } });
  expect(jsonOf(read('{"error":{"message":"gone"}}')[0]!)).toEqual({ error: { message: "gone" } });
});

test("a frame of over 16 MiB is given up, without its size having been copied per chunk", () => {
  const sink = readSse({ push() {}, end() {} });
  const chunk = new Uint8Array(64 * 1024).fill(97);
  expect(() => {
    for (let sent = 0; sent <= 17; sent += 1 / 16) sink.push(chunk);
  }).toThrow("over 16 MiB");
});

test("writing: untouched frames leave as the bytes that came, whatever the chunks were", () => {
  for (const text of [stream, stream.replaceAll("\n", "\r\n"), stream.replaceAll("\n", "\r")])
    for (const size of chunkSizes) {
      const out = gatherFrames();
      const sink = readSse(out);
      const sent: Uint8Array[] = [];
      for (const chunk of chunksOf(bytes(text), size)) {
        sink.push(chunk);
        const piece = out.take();
        if (piece) sent.push(piece.slice());
      }
      sink.end();
      expect(Buffer.concat(sent).toString()).toBe(text);
    }
});

test("writing: whole frames of one chunk leave without a copy", () => {
  const chunk = bytes("data: 1\n\ndata: 2\n\n");
  const out = gatherFrames();
  readSse(out).push(chunk);
  expect(out.take()?.buffer).toBe(chunk.buffer);
  expect(out.take()).toBeUndefined();
});

test("writing: frames of our own making stand between the others in order", () => {
  const out = gatherFrames();
  const sink = readSse(out);
  sink.push(bytes("data: 1\n\n"));
  out.push({ event: "ping", data: "{}" });
  out.push({ data: "a\nb" });
  sink.push(bytes("data: 2\n\n"));
  expect(Buffer.from(out.take()!).toString()).toBe(
    "data: 1\n\nevent: ping\ndata: {}\n\ndata: a\ndata: b\n\ndata: 2\n\n",
  );
});
