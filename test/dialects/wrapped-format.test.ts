/** Rows: replies that are to be a list or a choice: an object upstream, unwrapped for the client. */
import { expect, test } from "bun:test";
import type { Conversation, Dialect, ResponseFormat } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { run } from "../../src/lib/net/stream/stream";
import { adapt } from "../support/adapt";
import fc from "../support/random";

const list = { type: "array", items: { type: "string" } };
const wanting = (format: ResponseFormat): Conversation => ({ model: "m", turns: [], tools: [], stream: true, format });

/** The text of a reply that comes in pieces, as the client gets it. */
function restored(format: ResponseFormat, pieces: string[], target: Dialect = "responses"): string {
  const events: ReplyEvent[] = [
    { type: "start", id: "1", model: "m" },
    { type: "block-start", block: { kind: "text" } },
    ...pieces.map((text) => ({ type: "block-delta" as const, text })),
    { type: "block-end" },
    { type: "finish", reason: "stop" },
  ];
  const texts = run(adapt(wanting(format), target).restore!, events);
  expect(texts.filter(({ type }) => type !== "block-delta")).toEqual(
    events.filter(({ type }) => type !== "block-delta"),
  );
  return texts.map((event) => (event.type === "block-delta" ? event.text : "")).join("");
}

const sent = (format: ResponseFormat, target: Dialect = "chat") => adapt(wanting(format), target);

test("the schema of anything but an object is the one member of an object for OpenAI's APIs, and strict if it qualifies", () => {
  for (const target of ["chat", "responses"] as const) {
    const { conversation, fixups } = sent({ schema: list }, target);
    expect(conversation.format).toEqual({
      strict: true,
      schema: { type: "object", properties: { answer: list }, required: ["answer"], additionalProperties: false },
    });
    expect(fixups).toEqual(["schema-wrapped"]);
  }
});

test("the schema of an object, and one for Anthropic's API, stays", () => {
  for (const [schema, target] of [
    [{ type: "object", properties: {} }, "chat"],
    [list, "messages"],
  ] as const) {
    const { conversation, fixups } = sent({ schema }, target);
    expect([conversation.format?.schema, fixups]).toEqual([schema, []]);
  }
});

test("a wrapped schema keeps what its references point to", () => {
  const tree = { type: "array", items: { anyOf: [{ $ref: "#" }, { $ref: "#/$defs/leaf" }] }, $defs: { leaf: {} } };
  expect(sent({ schema: tree }).conversation.format?.schema).toMatchObject({
    properties: { answer: { items: { anyOf: [{ $ref: "#/properties/answer" }, { $ref: "#/$defs/leaf" }] } } },
    $defs: { leaf: {} },
  });
});

test("the reply to a wrapped schema is the value as the model wrote it, in whatever pieces it comes", () => {
  const cut = (text: string, places: number[]) =>
    [0, ...places.map((place) => place % (text.length + 1)).sort((a, b) => a - b), text.length].map((to, at, all) =>
      text.slice(all[at - 1] ?? 0, to),
    );
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 3 }),
      fc.constantFrom("", " ", "\n  "),
      fc.array(fc.nat(200), { maxLength: 8 }),
      (value, space, places) => {
        const text = `{${space}"answer"${space}:${space}${value}${space}}${space}`;
        expect(restored({ schema: list }, cut(text, places))).toBe(value);
      },
    ),
  );
});

test.each([
  [["I can", "not do that."], "I cannot do that."],
  [['{"answer":["a', '","b'], '["a","b'],
  [['["a"]'], '["a"]'],
  [['{"answer":[1],"more":2}'], "[1]"],
  [["  "], "  "],
])("the reply that is not what was asked for is passed on as far as it goes: %j", (pieces, expected) => {
  expect(restored({ schema: list }, pieces)).toBe(expected);
});

test("the reply to a wish for one of some words is the word, for every API", () => {
  const format: ResponseFormat = { schema: { type: "string", enum: ["red", "blue"] }, isPlain: true };
  for (const target of ["chat", "responses", "messages"] as const)
    expect(restored(format, ['{"answer": "r', 'ed"}'], target)).toBe("red");
});
