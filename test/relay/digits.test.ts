/** Numbers keep their digits: what a client or a model spelt arrives so, whichever two dialects speak, and in every way. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Dialect, dialects } from "../../src/dialects/hub/conversation";
import { offerOnly } from "../support/catalogue";
import { dialectAt } from "../support/log-capture";
import { type RunningProxy, startProxy } from "../support/proxy";
import fc from "../support/random";
import { replyOf, requestOf, streamOf } from "../support/source-text";

const models: Record<Dialect, string> = {
  chat: "gpt-4.1",
  responses: "gpt-5.3-codex",
  messages: "claude-sonnet-4.6",
};
const clientPaths: Record<Dialect, string> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

let proxy: RunningProxy;
let sent = "";
let answer: (dialect: Dialect, stream: boolean) => string;

beforeAll(async () => {
  proxy = await startProxy();
  offerOnly(proxy.demo, {
    [models.chat]: ["/chat/completions"],
    [models.responses]: ["/responses"],
    [models.messages]: ["/v1/messages"],
  });
  proxy.demo.intercept(
    /^\/(chat\/completions|responses|v1\/messages)$/,
    ({ path, bytes }) => {
      sent = Buffer.from(bytes).toString();
      const stream = JSON.parse(sent).stream === true;
      const type = stream ? "text/event-stream" : "application/json";
      return new Response(answer(dialectAt[path]!, stream), { headers: { "content-type": type } });
    },
    Number.POSITIVE_INFINITY,
  );
});
afterAll(() => proxy[Symbol.asyncDispose]());

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
// biome-ignore lint/suspicious/noExplicitAny: three wires, read as they come
type Json = any;

const eventsOf = (text: string) =>
  [...text.matchAll(/^data: (\{[^\n]*)$/gm)].map(([, data]) => JSON.parse(data!) as Record<string, never>);

const pairs = dialects.flatMap((client) => dialects.map((upstream) => [client, upstream] as const));

describe.each(pairs)("%s → %s", (client, upstream) => {
  describe.each([
    ["full", false],
    ["stream", true],
  ] as const)("%s", (_, stream) => {
    test.each([
      ["as it came", false],
      ["mended", true],
    ] as const)("a request, %s", async (_, needsMend) => {
      await fc.assert(
        fc.asyncProperty(numbers, words, async (list, word) => {
          const value = objectOf(list, word);
          answer = (dialect, streamed) =>
            streamed ? streamOf(dialect, models[upstream], ["{}"]) : replyOf(dialect, models[upstream], "{}");
          const body = requestOf(client, models[upstream], value, stream, needsMend);
          const response = await proxy.post(clientPaths[client], body);
          await response.text();
          expect(response.status).toBe(200);
          // Once in the call, once in the tool's schema.
          expect(listsIn(sent)).toEqual([list.join(","), list.join(",")]);
          expect(deepIn(sent)).toEqual([list[0]!, list[0]!]);
          if (client === upstream && !needsMend && (client !== "chat" || !stream)) expect(sent).toBe(body);
        }),
        { numRuns: 15 },
      );
    });

    test.each([
      ["as it came", ""],
      ["mended", "-2025-08-07"],
    ])("a reply, %s", async (_, dated) => {
      await fc.assert(
        fc.asyncProperty(numbers, words, fc.integer({ min: 1, max: 7 }), async (list, word, size) => {
          const value = objectOf(list, word);
          const model = models[upstream] + dated;
          const pieces = value.match(new RegExp(`[\\s\\S]{1,${size}}`, "g")) ?? [];
          answer = (dialect, streamed) =>
            streamed ? streamOf(dialect, model, pieces) : replyOf(dialect, model, value);
          const body = requestOf(client, models[upstream], "{}", stream, false);
          const response = await proxy.post(clientPaths[client], body);
          const text = await response.text();
          expect(response.status).toBe(200);
          const told = stream ? inputIn[client](eventsOf(text)) : text;
          expect(listsIn(told)).toEqual([list.join(",")]);
          expect(deepIn(told)).toEqual([list[0]!]);
        }),
        { numRuns: 15 },
      );
    });
  });
});
