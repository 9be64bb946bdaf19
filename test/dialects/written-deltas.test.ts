/** Property: deltas are written without the serializer, and read as what the serializer would have written. */
import { expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import { type Dialect, dialects } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { parseJson } from "../../src/lib/json";
import type { SseFrame } from "../../src/lib/net/stream/sse";
import { Comparison } from "../support/differential";
import fc, { triesOf } from "../support/random";
import { bytesAt, decode, decodeFrames, jsonAt, recorded, written } from "../support/streams";

const conversation = (client: Dialect) => codecs[client].decodeRequest(jsonAt("text", `${client}.request.json`));

function compareFrames(comparison: Comparison, name: string, frames: SseFrame[]): void {
  for (const { data } of frames)
    if (data !== undefined && data !== "[DONE]") comparison.same(name, data, JSON.stringify(parseJson(data)));
}

test.each([...dialects])("The streams of the fixtures are written to %s as by the serializer.", (client) => {
  const comparison = new Comparison();
  for (const upstream of dialects)
    for (const [folder, file] of recorded(upstream, "stream.txt")) {
      const events = decode(codecs[upstream], [bytesAt(folder, file)]);
      compareFrames(comparison, folder, written(codecs[client].encodeStream(conversation(client)), events));
    }
  comparison.expectAtLeast(400);
});

const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(" word", "a", "größe 🎈") },
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc.constantFrom(
    "",
    '"',
    "\\",
    '\\"',
    "\n\ndata: [DONE]\n\n",
    '"}}]}\n\ndata: {"error":"x"}',
    "\u2028",
    "\ud83d",
    "\\u0041",
  ),
);

const kinds = ["text", "thinking", "tool-call"] as const;

test.each([...dialects])("Any texts are written to %s as by the serializer, and read again as they were.", (client) => {
  const comparison = new Comparison();
  fc.assert(
    fc.property(fc.constantFrom(...kinds), fc.array(text, { minLength: 1, maxLength: 12 }), (kind, texts) => {
      const block = kind === "tool-call" ? { kind, id: "call_1", name: "look" } : { kind };
      const events: ReplyEvent[] = [
        { type: "start", id: "reply_1", model: "m" },
        { type: "block-start", block },
        ...texts.map((text) => ({ type: "block-delta", text }) as const),
        { type: "block-end" },
        { type: "finish", reason: kind === "tool-call" ? "tool-call" : "stop" },
      ];
      const frames = written(codecs[client].encodeStream(conversation(client)), events);
      compareFrames(comparison, kind, frames);
      const read = textOf(decodeFrames(codecs[client], frames));
      // A call without arguments is written as `{}` or not at all.
      expect(kind === "tool-call" && read === "{}" ? "" : read).toBe(texts.join(""));
    }),
    { numRuns: triesOf(300) },
  );
  comparison.expectAtLeast(triesOf(1500));
});

const textOf = (events: ReplyEvent[]) =>
  events.map((event) => (event.type === "block-delta" ? event.text : "")).join("");
