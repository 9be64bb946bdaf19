/**
 * Property: numbers keep their digits: what a client or a model spelt arrives so, whichever two dialects speak, and in
 * every way.
 */
import { afterAll, expect, test } from "bun:test";
import { type Dialect, dialects } from "../../../src/dialects/hub/conversation";
import { Comparison } from "../../support/differential";
import { eventsIn } from "../../support/event-stream";
import type { Json } from "../../support/json";
import { models, OwnPairs } from "../../support/own-pairs";
import fc, { drawn } from "../../support/random";
import { replyOf, requestOf, streamOf } from "../../support/source-text";

const pairs = await OwnPairs.start();
afterAll(() => pairs[Symbol.asyncDispose]());

// ── Numbers that JavaScript would spell otherwise ──

const digits = (least: number, max: number) =>
  fc
    .array(fc.integer({ min: 0, max: 9 }), { minLength: least, maxLength: max })
    .map((each) => each.join("").replace(/^0+(?=\d)/, ""));
const fraction = fc
  .array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 25 })
  .map((each) => `.${each.join("")}`);
const exponent = fc
  .tuple(fc.constantFrom("e", "E"), fc.constantFrom("", "+", "-"), fc.integer({ min: 0, max: 400 }))
  .map((parts) => parts.join(""));
const orNothing = (text: fc.Arbitrary<string>) => fc.oneof(text, fc.constant(""));
const number = fc
  .tuple(fc.constantFrom("", "-"), digits(1, 30), orNothing(fraction), orNothing(exponent))
  .map((parts) => parts.join(""));
const numbers = fc.array(
  fc.oneof(number, fc.constantFrom("1e3", "1E+2", "-0", "1.0", "9007199254740993", "1234567890123456789", "0.10")),
  { minLength: 1, maxLength: 8 },
);
/** Texts that only look like numbers, between those that are. */
const words = fc.constantFrom("plain", "1.0", '"m":[1e3', "-0,", "\\\\", "\u2028é");

const objectOf = (list: readonly string[], word: string) =>
  `{"word":${JSON.stringify(word)},"n":[${list.join(",")}],"deep":{"x":[{"y":${list[0]}}]}}`;

/** The lists of numbers in a text, in whichever depth of quotes. */
const listsIn = (text: string): string[] =>
  [...text.matchAll(/(?<!")\\*"n\\*":\s*\[([^\]]*)\]/g)].map(([, list]) => list!);
const deepIn = (text: string): string[] => [...text.matchAll(/\\*"y\\*":\s*([^}]*)\}/g)].map(([, one]) => one!);

/** What a streamed reply tells of its call's input, put together by hand. */
const inputIn: Record<Dialect, (events: Record<string, never>[]) => string> = {
  chat: (events) =>
    events.map((event: Json) => event.choices?.[0]?.delta?.tool_calls?.[0]?.function?.arguments ?? "").join(""),
  responses: (events) =>
    events.map((event: Json) => (event.type === "response.function_call_arguments.delta" ? event.delta : "")).join(""),
  messages: (events) => events.map((event: Json) => event.delta?.partial_json ?? "").join(""),
};
const cases = dialects.flatMap((client) =>
  dialects.flatMap((upstream) =>
    [false, true].flatMap((isStream) => [false, true].map((isChanged) => ({ client, upstream, isStream, isChanged }))),
  ),
);

test.each(drawn("requests", cases, 2))(
  "A request keeps its digits from $client to $upstream, streamed: $isStream, changed on its way: $isChanged.",
  async ({ client, upstream, isStream, isChanged }) => {
    const comparison = new Comparison();
    await fc.assert(
      fc.asyncProperty(numbers, words, async (list, word) => {
        pairs.answer = (dialect, streams) =>
          streams ? streamOf(dialect, models[upstream], ["{}"]) : replyOf(dialect, models[upstream], "{}");
        const body = requestOf(client, models[upstream], objectOf(list, word), isStream, isChanged);
        const told = await pairs.ask(client, body);
        expect(told.status, told.text).toBe(200);
        // Once in the call, once in the tool's schema.
        const { sent } = pairs;
        comparison.same("lists", listsIn(sent), [list.join(","), list.join(",")]);
        comparison.same("deep", deepIn(sent), [list[0]!, list[0]!]);
        if (client === upstream && !isChanged && (client !== "chat" || !isStream)) expect(sent).toBe(body);
      }),
      { numRuns: 10 },
    );
    comparison.expectAtLeast(20);
  },
);

test.each(drawn("replies", cases, 2))(
  "A reply keeps its digits from $upstream to $client, streamed: $isStream, of another model: $isChanged.",
  async ({ client, upstream, isStream, isChanged }) => {
    const comparison = new Comparison();
    await fc.assert(
      fc.asyncProperty(numbers, words, fc.integer({ min: 1, max: 7 }), async (list, word, size) => {
        const value = objectOf(list, word);
        const model = models[upstream] + (isChanged ? "-2025-08-07" : "");
        const pieces = value.match(new RegExp(`[\\s\\S]{1,${size}}`, "g")) ?? [];
        pairs.answer = (dialect, streams) =>
          streams ? streamOf(dialect, model, pieces) : replyOf(dialect, model, value);
        const told = await pairs.ask(client, requestOf(client, models[upstream], "{}", isStream, false));
        expect(told.status, told.text).toBe(200);
        const said = isStream ? inputIn[client](eventsIn(told.text)) : told.text;
        comparison.same("lists", listsIn(said), [list.join(",")]);
        comparison.same("deep", deepIn(said), [list[0]!]);
      }),
      { numRuns: 10 },
    );
    comparison.expectAtLeast(20);
  },
);
