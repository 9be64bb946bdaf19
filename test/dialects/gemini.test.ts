/** Rows: Gemini as its clients speak it: requests that are read, and replies that are written. */
import { expect, test } from "bun:test";
import { geminiReader } from "../../src/deploy/documents/gemini-reply";
import { gemini } from "../../src/dialects/gemini/codec";
import type { Conversation, JsonObject } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { overviewOf } from "../../src/dialects/overview";
import type { Json } from "../support/json";
import { wholeIn } from "../support/pairs";
import fc, { triesOf } from "../support/random";
import { decodeFrames, wire, written } from "../support/streams";

const decode = (members: JsonObject): Conversation =>
  gemini.decodeRequest({ model: "m", contents: [{ parts: [{ text: "Hi" }] }], ...members });
const decodeContents = (...contents: unknown[]) => decode({ contents }).turns;

test("the words of a request mean the same in snake_case, but the names that are a tool's own stay", () => {
  const camel = JSON.parse(wholeIn("gemini.request.txt").given);
  const spelt = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(spelt);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [
        key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
        spelt(member),
      ]),
    );
  };
  expect(decode(spelt(camel) as JsonObject)).toEqual(decode(camel));
});

test("the words of a request mean the same with one object in place of a list of one, and with numbers as texts", () => {
  const many = JSON.parse(wholeIn("gemini.request.txt").given);
  // What is a tool's own, or goes on as it came.
  const isOwn = (key: string) =>
    /^(?:args|response|parametersJsonSchema|responseSchema|enum|videoMetadata|safetySettings)$/.test(key);
  const asOne = (value: unknown, key = ""): unknown => {
    if (isOwn(key)) return value;
    if (typeof value === "number") return `${value}`;
    if (Array.isArray(value)) return value.length === 1 ? asOne(value[0]) : value.map((each) => asOne(each));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, asOne(member, name)]));
  };
  const one = asOne(many) as JsonObject;
  expect(decode(one)).toEqual(decode(many));
  const overview = (body: JsonObject) => overviewOf(gemini.outline(body));
  expect(overview(one)).toEqual(overview(many));
  expect(() => gemini.checkRequest({ contents: {} })).not.toThrow();
});

const call = (name: string, id?: string) => ({ functionCall: { name, args: {}, ...(id && { id }) } });
const result = (name: string, output: string, id?: string) => ({
  functionResponse: { name, response: { output }, ...(id && { id }) },
});

test("ids that are made are the same for the same beginning", () => {
  const first = [{ role: "model", parts: [call("f")] }, { parts: [result("f", "x")] }];
  const more = [...first, { role: "model", parts: [call("f"), call("g")] }];
  expect(decodeContents(...more).slice(0, 2)).toEqual(decodeContents(...first));
});

/** A reply of blocks with deltas, and its proofs. */
const word = fc.string({ minLength: 1, maxLength: 6 });
const words = fc.array(word, { minLength: 1, maxLength: 4 });
const block = fc.oneof(
  fc.record({ kind: fc.constant("text" as const), words }),
  fc.record({ kind: fc.constant("thinking" as const), words, proof: word }),
  fc.record({ kind: fc.constant("tool-call" as const), name: fc.constantFrom("f", "g") }),
);
const reply = fc.array(block, { minLength: 1, maxLength: 6 }).map((blocks): ReplyEvent[] => [
  { type: "start", id: "r1", model: "m" },
  ...blocks.flatMap((each, index): ReplyEvent[] => {
    if (each.kind === "tool-call")
      return [
        { type: "block-start", block: { kind: "tool-call", id: `call_${index}`, name: each.name } },
        { type: "block-delta", text: '{"a":' },
        { type: "block-delta", text: `${index}}` },
        { type: "block-end" },
      ];
    const signature = each.kind === "thinking" ? { dialect: "messages" as const, value: each.proof } : undefined;
    return [
      { type: "block-start", block: { kind: each.kind } },
      ...each.words.map((text): ReplyEvent => ({ type: "block-delta", text })),
      { type: "block-end", ...(signature && { signature }) },
    ];
  }),
  { type: "usage", usage: { input: 9, output: 5 } },
  { type: "finish", reason: "stop" },
]);
const asked = (extras: JsonObject = { alt: "sse" }): Conversation => ({
  model: "m",
  turns: [],
  tools: [],
  stream: true,
  reasoning: { adaptive: true, summary: "auto" },
  extras: { google: extras },
});
const runs = { numRuns: triesOf(300) };

const contentOf = (body: Json) => body.candidates[0].content;

test("a reply to a Gemini client says the same full, as events and as an array, wherever it is beaten", () => {
  fc.assert(
    fc.property(reply, fc.integer({ min: 1, max: 5 }), (events, every) => {
      const full = geminiReader.decodeReply(gemini.encodeReply(events, asked()));
      const beat = (client: { keepAlive(): void }, index: number) => {
        if (index % every === 0) client.keepAlive();
      };
      const frames = written(gemini.encodeStream(asked()), events, beat);
      expect(text(decodeFrames(geminiReader, frames))).toEqual(text(full));
      const array = written(gemini.encodeStream(asked({})), events, beat);
      const pieces = JSON.parse(new TextDecoder().decode(wire(array)));
      const data = pieces.map((piece: Json) => ({ data: JSON.stringify(piece) }));
      expect(text(decodeFrames(geminiReader, data))).toEqual(text(full));
    }),
    runs,
  );
});

test("a reply: sent back whole or in the pieces it was streamed in is one turn, with every word and proof", () => {
  fc.assert(
    fc.property(reply, (events) => {
      const whole = contentOf(gemini.encodeReply(events, asked()));
      const pieces = written(gemini.encodeStream(asked()), events).map(({ data }) => contentOf(JSON.parse(data!)));
      const turns = decodeContents(whole);
      expect(turns).toHaveLength(1);
      expect(decodeContents(...pieces)).toEqual(turns);
      const parts = turns[0]!.parts;
      const said = (kind: string) =>
        parts.flatMap((part) => (part.kind === kind ? [(part as Json).text] : [])).join("");
      expect(said("text")).toBe(spoken(events, "text"));
      expect(said("thinking")).toBe(spoken(events, "thinking"));
      const proofs = parts.flatMap((part) =>
        part.kind === "thinking" && part.signature ? [part.signature.value] : [],
      );
      expect(proofs).toEqual(
        events.flatMap((event) => (event.type === "block-end" && event.signature ? [event.signature.value] : [])),
      );
    }),
    runs,
  );
});

/** The blocks' texts, without the cuts. */
const text = (events: ReplyEvent[]) => {
  const all: string[] = [];
  for (const event of events)
    if (event.type === "block-start") all.push(JSON.stringify(event.block));
    else if (event.type === "block-delta") all[all.length - 1] += event.text;
    else if (event.type === "block-end") all[all.length - 1] += event.signature?.value ?? "";
    else if (event.type !== "start") all.push(JSON.stringify(event));
  return all;
};

function spoken(events: ReplyEvent[], kind: string): string {
  let open = false;
  let said = "";
  for (const event of events)
    if (event.type === "block-start") open = event.block.kind === kind;
    else if (event.type === "block-delta" && open) said += event.text;
  return said;
}
