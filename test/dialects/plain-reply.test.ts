/** A plain full reply is read in a shorter way, and nothing of what is recorded may differ for it. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { codecs } from "../../src/dialects/codecs";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import fc from "../support/random";
import { fixtures, hasFixture, jsonAt } from "../support/streams";

const { decodeReply, summarizeReply } = codecs.chat;
/** What the record of a request takes from a reply without signatures. */
const recorded = (body: JsonObject) => decodeReply(body).filter(({ type }) => !type.startsWith("block-"));
const hello: JsonObject = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1785000000,
  model: "gpt-5-mini",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
};

test("a plain reply gives the same start, usage and end", () => {
  expect(summarizeReply!(hello)).toEqual(recorded(hello));
  expect(recorded(hello).map(({ type }) => type)).toEqual(["start", "usage", "finish"]);
});

const replies = readdirSync(fixtures).filter((folder) => hasFixture(folder, "chat.reply.json"));
test.each(replies)("%s: the same or the long way", (folder) => {
  const body = jsonAt(folder, "chat.reply.json");
  const summary = summarizeReply!(body);
  if (summary) expect(summary).toEqual(recorded(body));
});

test("replies of every shape: the same, or the long way where there is more than a text", () => {
  const value = fc.oneof(
    fc.constantFrom<unknown>(undefined, null, "", "text", 0, 3, [], {}, "stop", "length", "tool_calls", "error"),
    fc.constantFrom<unknown>([{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }], {
      message: "no",
    }),
  );
  const record = (names: string[]) => fc.dictionary(fc.constantFrom(...names), value, { noNullPrototype: true });
  const messageNames = [
    "role",
    "content",
    "refusal",
    "padding",
    "tool_calls",
    "reasoning_text",
    "reasoning_opaque",
    "x",
  ];
  const message = fc.oneof(record(messageNames), fc.constant({ role: "assistant", content: "Hello." }), value);
  const choice = fc.oneof(
    fc.record({ index: value, message, finish_reason: fc.oneof(fc.constantFrom("stop", "length"), value) }),
    value,
  );
  const counts = record(["prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens"]);
  const others = record(["id", "model", "error", "copilot_errors", "copilot_usage", "choices"]);
  let plain = 0;
  fc.assert(
    fc.property(fc.array(choice, { maxLength: 2 }), counts, others, (choices, usage, more) => {
      const body = { ...hello, choices, usage, ...more };
      const summary = summarizeReply!(body);
      if (!summary) return;
      plain++;
      expect(summary).toEqual(recorded(body));
      expect(decodeReply(body).some((event) => event.type === "block-end" && event.signature)).toBe(false);
    }),
    { numRuns: 10_000 },
  );
  expect(plain).toBeGreaterThan(20);
});
