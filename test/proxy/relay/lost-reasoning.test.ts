/**
 * Scenario: what an upstream says of reasoning that it did not show its model is a note of the request, and reaches the
 * client unchanged; from `fixtures/scenes/lost.txt`, and here what replaces it, and lists of any form.
 */
import { expect, test } from "bun:test";
import { lostReasoningIn } from "../../../src/dialects/hub/lost-reasoning";
import { messages } from "../../../src/dialects/messages/codec";
import { jsonFrame } from "../../../src/lib/net/stream/sse";
import { run } from "../../../src/lib/net/stream/stream";
import { testScenes } from "../../support/scenes";
import { reads } from "../../support/streams";

testScenes("lost");

const dropped = [{ type: "thinking_dropped", path: "messages.1.content.0", reason: "organization_binding_mismatch" }];

test("a reply of another model that went on replaces what the first one said", () => {
  const frame = (type: string, more: object) => jsonFrame({ type, ...more }, type);
  const message = { id: "msg_1", model: "m", content: [], usage: {}, input_transformations: dropped };
  const end = { delta: { stop_reason: "end_turn" }, usage: {} };
  const reasonsOf = (more: object) =>
    run(reads(messages), [
      frame("message_start", { message }),
      frame("message_delta", { ...end, ...more }),
      frame("message_stop", {}),
    ]).flatMap((event) => (event.type === "finish" ? [event.lostReasoning] : []));
  expect(reasonsOf({})).toEqual([["organization_binding_mismatch"]]);
  expect(reasonsOf({ input_transformations: [] })).toEqual([undefined]);
});

test("a list of any size and form gives a few plain names", () => {
  const odd = [
    null,
    3,
    "x",
    {},
    { type: "thinking_dropped" },
    { type: "thinking_dropped", reason: "a sentence of it" },
  ];
  expect(lostReasoningIn(odd)).toEqual(["unknown", "(no plain name)"]);
  expect(lostReasoningIn("removed")).toEqual([]);
  const many = Array.from({ length: 50_000 }, (_, at) => ({ ...dropped[0], reason: `reason_${at}` }));
  expect(lostReasoningIn(many)).toHaveLength(8);
});
