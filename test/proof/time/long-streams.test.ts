/**
 * Rows: a promise in time: a stream costs what its length costs, into however many pieces its upstream cuts a list, a
 * block or a call.
 */
import { describe, expect, test } from "bun:test";
import { codecs } from "../../../src/dialects/codecs";
import type { Dialect } from "../../../src/dialects/hub/conversation";
import type { SseFrame } from "../../../src/lib/net/stream/sse";
import { workedMs } from "../../support/held";
import { collects, reads } from "../../support/streams";

const pieces = 12_000;
const many = <Item>(make: (index: number) => Item): Item[] => Array.from({ length: pieces }, (_, index) => make(index));

/** A message with one block, of whose deltas there are many. */
const message = (block: object, delta: (index: number) => object): object[] => [
  { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", model: "c", content: [] } },
  { type: "content_block_start", index: 0, content_block: block },
  ...many((at) => ({ type: "content_block_delta", index: 0, delta: delta(at) })),
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 5 } },
  { type: "message_stop" },
];

const chunk = (delta: object, more: object = {}): object => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, ...more }],
});
const finished = chunk({}, { finish_reason: "stop" });
const call = (index: number, input: string, id?: string): object => ({
  tool_calls: [
    {
      index,
      ...(id === undefined ? {} : { id, type: "function" }),
      function: { arguments: input, ...(id && { name: id }) },
    },
  ],
});

const named = (input: string): object => ({ tool_calls: [{ index: 0, function: { name: "one", arguments: input } }] });

const streams: [what: string, dialect: Dialect, frames: object[]][] = [
  [
    "a text with many citations",
    "messages",
    message({ type: "text", text: "Hi." }, (at) => ({
      type: "citations_delta",
      citation: { type: "page", url: `${at}` },
    })),
  ],
  [
    "a block of an unknown kind that gets many members",
    "messages",
    message({ type: "picture" }, (at) => ({ type: "picture_delta", [`member${at}`]: at })),
  ],
  [
    "an end that comes again with other numbers",
    "messages",
    [
      { type: "message_start", message: { id: "msg_1", model: "c", usage: { input_tokens: 9 } } },
      ...many((at) => ({ type: "message_delta", delta: { [`member${at}`]: at }, usage: { [`number${at}`]: at } })),
      { type: "message_stop" },
    ],
  ],
  [
    "a text with the probabilities of many words",
    "chat",
    [...many((at) => chunk({ content: "a" }, { logprobs: { content: [{ token: "a", logprob: -at }] } })), finished],
  ],
  [
    "many members of a chunk",
    "chat",
    [...many((at) => ({ ...chunk({ content: "a" }), [`member${at}`]: at })), finished],
  ],
  [
    "a call full of braces while another one waits",
    "chat",
    [
      chunk(call(0, '{"a":"', "one")),
      chunk(call(1, "{}", "two")),
      ...many(() => chunk(call(0, "}".repeat(60)))),
      chunk(call(0, '"}')),
      finished,
    ],
  ],
  [
    "a call full of braces that has its name again in each piece",
    "chat",
    [
      chunk(call(0, '{"a":"', "one")),
      chunk(call(1, "{}", "two")),
      ...many(() => chunk(named("}".repeat(60)))),
      chunk(call(0, '"}')),
      finished,
    ],
  ],
  [
    "a text within a call full of braces",
    "chat",
    [
      chunk(call(0, `{"a":"${"}".repeat(600_000)}`, "one")),
      ...many(() => chunk({ content: "a" })),
      chunk(call(0, '"}')),
      finished,
    ],
  ],
];

const ways = {
  read: (dialect: Dialect) => reads(codecs[dialect])({ push() {}, end() {} }),
  collected: (dialect: Dialect) => collects(codecs[dialect], () => {}),
};

describe.each(Object.entries(ways))("%s", (way, open) => {
  test.each(streams)(`%s is ${way} in the time of its length`, (_what, dialect, frames) => {
    const framed = frames.map((json): SseFrame => ({ data: JSON.stringify(json) }));
    const sink = open(dialect);
    const before = workedMs();
    for (const frame of framed) sink.push({ ...frame });
    sink.end();
    expect(workedMs() - before).toBeLessThan(600);
  });
});
