/**
 * Rows: streams whose `output_index` is not the place in the terminal output: each item is told once, under its own id.
 */
import { expect, test } from "bun:test";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import { responses } from "../../src/dialects/responses/codec";
import { jsonFrame, jsonOf, type SseFrame } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { meaningOf } from "../support/reply-grammar";
import { passes, reads, written } from "../support/streams";

const event = (type: string, more: JsonObject): SseFrame => jsonFrame({ type, ...more }, type);
const response = { id: "resp_1", object: "response", model: "m", status: "in_progress", output: [] };
const message = (id: string, text: string) => ({
  type: "message",
  id,
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }],
});
const call = (id: string, args: string) => ({
  type: "function_call",
  id,
  call_id: "call_1",
  name: "f",
  arguments: args,
});
const created = event("response.created", { response });
const completed = (...output: JsonObject[]) =>
  event("response.completed", { response: { ...response, status: "completed", output } });
const text = (output_index: number, id: string, words: string): SseFrame[] => [
  event("response.output_item.added", { output_index, item: { ...message(id, ""), content: [] } }),
  event("response.output_text.delta", { output_index, item_id: id, content_index: 0, delta: words }),
  event("response.output_item.done", { output_index, item: message(id, words) }),
];

const read = (frames: SseFrame[]) => meaningOf(run(reads(responses), frames)).blocks;
const passed = (frames: SseFrame[]): JsonObject[] => {
  const last = jsonOf(
    written(
      passes(responses, { model: "m", usage: true, replies: 1 }, () => {}),
      frames,
    ).at(-1)!,
  );
  return (last as { response: { output: JsonObject[] } }).response.output;
};

test("an index that the upstream left out is counted on", () => {
  const frames = [created, ...text(1, "m1", "Hello."), completed(message("m2", "Hello."))];
  expect(read(frames)).toEqual([{ kind: "text", text: "Hello." }]);
  expect(passed(frames)).toMatchObject([{ id: "m1" }]);
});

test("an item that was not streamed, before one that was", () => {
  const late = call("fc1", "{}");
  const frames = [created, ...text(0, "m1", "Hello."), completed(late, message("m2", "Hello."))];
  expect(read(frames)).toMatchObject([{ text: "Hello." }, { kind: "tool-call", id: "call_1" }]);
  expect(passed(frames)).toMatchObject([{ id: "fc1" }, { id: "m1" }]);
});

test("a call that was announced, never ended, and stands elsewhere in the end, is one call", () => {
  const frames = [
    created,
    event("response.output_item.added", { output_index: 0, item: call("fc1", "") }),
    ...text(1, "m1", "Hello."),
    completed(message("m2", "Hello."), call("fc2", '{"a":1}')),
  ];
  const blocks = read(frames);
  expect(blocks.filter(({ kind }) => kind === "tool-call")).toEqual([
    expect.objectContaining({ id: "call_1", text: '{"a":1}' }),
  ]);
  expect(blocks.filter(({ kind }) => kind === "text")).toEqual([expect.objectContaining({ text: "Hello." })]);
  expect(passed(frames)).toMatchObject([{ id: "m1" }, { id: "fc1" }]);
});

test("two messages, one of them streamed", () => {
  const frames = [created, ...text(0, "m1", "One."), completed(message("m2", "One."), message("m3", "Two."))];
  expect(read(frames)).toMatchObject([{ text: "One." }, { text: "Two." }]);
  expect(passed(frames)).toMatchObject([{ id: "m1" }, { id: "m3" }]);
});
