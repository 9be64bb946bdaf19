/**
 * Property: each step of a stream ends the next one once, after its last item, whether the stream was complete or broke
 * off.
 */
import { expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import { clientDialects, dialects } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { run, type Sink, type Stage } from "../../src/lib/net/stream/stream";
import { bytesAt, decode, jsonAt, passes, reads } from "../support/streams";

/** What the next step is told by this one of the items: `item`s, and `end`s. */
function told<In, Out>(stage: (next: Sink<Out>) => Sink<In>, items: readonly In[]): string[] {
  const calls: string[] = [];
  const sink = stage({ push: () => void calls.push("item"), end: () => void calls.push("end") });
  for (const item of items) sink.push(item);
  sink.end();
  return calls;
}

function expectOneEnd(calls: string[]): void {
  expect(calls.filter((call) => call === "end")).toHaveLength(1);
  expect(calls.at(-1)).toBe("end");
}

const stages = dialects.flatMap((dialect) => {
  const codec = codecs[dialect];
  const frames = run(readSse, [bytesAt("text", `${dialect}.stream.txt`)]);
  return [
    ["decodeStream", dialect, reads(codec) as Stage<SseFrame, unknown>, frames],
    ["passOn", dialect, passes(codec, { model: "m", usage: true, replies: 1 }, () => {}), frames],
  ] as const;
});

test.each(stages)("%s of %s ends the next step once.", (_, __, stage, frames) => {
  for (let length = 0; length <= frames.length; length++) expectOneEnd(told(stage, frames.slice(0, length)));
});

test.each([...clientDialects])("encodeStream of %s ends the next step once.", (client) => {
  const events: ReplyEvent[] = decode(codecs.chat, [bytesAt("text", "chat.stream.txt")]);
  const conversation = codecs[client].decodeRequest(jsonAt("text", `${client}.request.json`));
  expectOneEnd(told(codecs[client].encodeStream(conversation), events));
});
