/** Pairs: Chat, from the folders `fixtures/chat-*`, and rows of what is read, written and passed on. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { chat } from "../../src/dialects/chat/codec";
import { contextOf } from "../../src/dialects/chat/fixups";
import { ObjectEnd } from "../../src/dialects/chat/object-end";
import type { ReplyContext } from "../../src/dialects/codec";
import type { Conversation, JsonObject, Turn } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { ProxyError } from "../../src/lib/errors";
import { isObject, parseJson } from "../../src/lib/json";
import { jsonOf, readSse } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { chunkSizes } from "../support/differential";
import { ableModel } from "../support/facts";
import { checkChatStream } from "../support/grammar-chat";
import { encodeRequest, fixRequest } from "../support/noted";
import fc, { triesOf } from "../support/random";
import { meaningOf } from "../support/reply-grammar";
import {
  bytesAt,
  chunksOf,
  cutsOf,
  decode,
  decodeFrames,
  fixtures,
  hasFixture,
  jsonAt,
  overWire,
  passes,
  passesFull,
  reads,
  wire,
  written,
} from "../support/streams";

const able = ableModel("gpt-4.1", "Azure OpenAI");
const supports = { ...able.supports, adaptiveThinking: false, thinkingBudget: undefined };
const gpt: ModelFacts = {
  ...able,
  dialects: ["chat"],
  limits: { output: 16_384 },
  supports,
};
const gpt5: ModelFacts = {
  ...gpt,
  id: "gpt-5-mini",
  vendor: "OpenAI",
  supports: { ...supports, completionTokens: true },
};
const claude: ModelFacts = {
  id: "claude-sonnet-4.5",
  vendor: "Anthropic",
  dialects: ["chat"],
  limits: { output: 32_000, fullOutput: 16_000 },
  supports: { ...supports, efforts: [], thinkingBudget: { min: 1024, max: 32_000 } },
};
const versatile: ModelFacts = {
  ...gpt,
  supports: { ...supports, efforts: ["none", "low", "high"], thinkingBudget: { min: 1024, max: 32_000 } },
};
const gemini: ModelFacts = { ...gpt, id: "gemini-2.5-pro", vendor: "Google" };

const user = (content: unknown) => ({ role: "user", content });
const conversation = (...turns: Turn[]): Conversation => ({ model: "m", turns, tools: [], stream: true });
const encode = (given: Conversation, model = gpt) => encodeRequest(chat, given, model);

const quirks = readdirSync(fixtures).filter((name) => name.startsWith("chat-"));
const meant = (folder: string) => {
  const { asked, fixups, loose, ...meaning } = jsonAt(folder, "expected.json");
  return { asked, fixups: fixups, loose, meaning };
};
const askedOf = (folder: string, model: string): ReplyContext => ({
  model,
  usage: true,
  replies: 1,
  ...meant(folder).asked,
});

describe.each(quirks.filter((folder) => hasFixture(folder, "chat.stream.txt")))(
  "what Copilot's streams and replies are like: %s",
  (folder) => {
    const stream = bytesAt(folder, "chat.stream.txt");
    const { fixups, meaning, loose } = meant(folder);
    const whole = decode(chat, [stream]);
    const context = askedOf(folder, modelIn(stream));
    const ends = meaning.end.type === "finish";

    test("is understood, whatever the size of the chunks", () => {
      expect(meaningOf(whole)).toEqual(meaning);
      for (const size of chunkSizes) expect(decode(chat, chunksOf(stream, size))).toEqual(whole);
    });

    test("passes through with its fixups only, and reads the same", () => {
      const told = new Set<string>();
      const out = written(
        passes(chat, context, (name) => told.add(name)),
        run(readSse, [stream]),
      );
      expect([...told].sort()).toEqual(fixups.stream);
      if (told.size === 0 && ends) expect(wire(out)).toEqual(stream);
      if (ends && hasDone(stream) && !loose) checkChatStream(overWire(out), conversation());
      const usage = context.usage ? { ...meaning.usage } : {};
      if (told.has("bill-chunk")) delete usage.nanoCredits;
      expect(meaningOf(decodeFrames(chat, out))).toEqual({ ...meaning, usage });
    });

    test("a request that was fixed needs no second fixup", () => {
      const fixup = () => passes(chat, context, (name) => told.push(name));
      const told: string[] = [];
      const once = overWire(written(fixup(), run(readSse, [stream])));
      told.length = 0;
      const twice = written(fixup(), once);
      expect(told).toEqual([]);
      expect(wire(twice)).toEqual(wire(once));
    });

    test("cut at any byte passes through to one end, the same for client and books", () => {
      for (const frames of cutsOf(stream)) {
        const arrived = decodeFrames(
          chat,
          written(
            passes(chat, context, () => {}),
            frames,
          ),
        );
        const booked = meaningOf(run(reads(chat), frames));
        expect({ ...meaningOf(arrived), usage: {} }).toEqual({ ...booked, usage: {} });
      }
    });
  },
);

test.each(quirks.filter((folder) => hasFixture(folder, "chat.reply.json")))(
  "what Copilot's streams and replies are like: %s as a full reply",
  (folder) => {
    const reply = jsonAt(folder, "chat.reply.json");
    const { fixups, meaning } = meant(folder);
    expect(meaningOf(chat.decodeReply(reply))).toEqual(meaning);
    const context = askedOf(folder, reply.model);
    const told = new Set<string>();
    const fixed = passesFull(chat, reply, context, (name) => told.add(name));
    expect([...told].sort()).toEqual(fixups.reply);
    expect(meaningOf(chat.decodeReply(fixed))).toEqual(meaning);
    expect(fixed).toMatchObject({ object: "chat.completion", model: context.model, choices: [{ index: 0 }] });
    expect(passesFull(chat, fixed, context, () => {})).toBe(fixed);
  },
);

function modelIn(stream: Uint8Array): string {
  const [, name] = /"model":"([^"]+)"/.exec(new TextDecoder().decode(stream)) ?? [];
  return name ?? "";
}

function hasDone(stream: Uint8Array): boolean {
  return new TextDecoder().decode(stream).includes("[DONE]");
}

const errorOf = (folder: string) => decode(chat, [bytesAt(folder, "chat.stream.txt")]).at(-1);

test.each([
  [1024, 0, "finish"],
  [1025, 0, "error"],
  [1, 1023, "finish"],
  [1, 1024, "error"],
])(
  "a stream of %d calls that begin at index %d ends with %s: a faulty upstream fills no memory",
  (count, index, type) => {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      data: JSON.stringify({ id: "c", model: "m", choices: [{ index: 0, delta, finish_reason }] }),
    });
    const calls = Array.from({ length: count }, (_, at) => {
      const call = { index, id: `call_${at}`, type: "function", function: { name: "look", arguments: "{}" } };
      return chunk({ tool_calls: [call] });
    });
    expect(decodeFrames(chat, [...calls, chunk({}, "tool_calls"), { data: "[DONE]" }]).at(-1)).toMatchObject({ type });
  },
);

test("errors in a stream keep the upstream's code and words", () => {
  expect(errorOf("chat-error-chunk")).toEqual({
    type: "error",
    code: "model_overloaded",
    message: "The model is overloaded.",
  });
  expect(errorOf("chat-bare-error")).toEqual({ type: "error", code: "rate_limited", message: "Slow down." });
  expect(errorOf("chat-copilot-errors")).toEqual({
    type: "error",
    code: "agent_failed",
    message: "The agent failed.",
  });
  expect(errorOf("chat-broken-json")).toMatchObject({ code: "upstream_bad_event" });
  expect(errorOf("chat-cut-in-call")).toMatchObject({ code: "upstream_disconnected" });
});

test("errors in a stream reach the client as a chunk with `error`, and no [DONE]", () => {
  for (const folder of [
    "chat-bare-error",
    "chat-broken-json",
    "chat-copilot-errors",
    "chat-finish-error",
    "chat-cut-in-call",
  ]) {
    const frames = run(readSse, [bytesAt(folder, "chat.stream.txt")]);
    const out = overWire(
      written(
        passes(chat, { model: "gpt-4o-mini-2024-07-18", usage: true, replies: 1 }, () => {}),
        frames,
      ),
    );
    expect(jsonOf(out.at(-1)!)).toMatchObject({ error: { message: expect.any(String), code: expect.any(String) } });
    expect(new TextDecoder().decode(wire(out))).not.toContain("oops");
  }
});

test("errors in a stream leave no trace after the end: later frames, beats and failures are nothing", () => {
  const asked: ReplyContext = { model: "", usage: true, replies: 1 };
  const late = { data: '{"choices":[{"index":0,"delta":{"content":"late"}}]}' };
  const out = written(
    passes(chat, asked, () => {}),
    [{ data: '{"error":{"message":"gone"}}' }, late, { data: "[DONE]" }],
    (client) => {
      client.keepAlive();
      client.fail({ type: "error", code: "x", message: "y" });
    },
  );
  expect(out.map(({ data }) => data)).toEqual(['{"error":{"message":"gone"}}']);
});

test("a reply has one end, whatever the frames of its stream are", () => {
  const word = fc.constantFrom(
    ...`
        choices delta content tool_calls index id function name arguments finish_reason stop usage error
        reasoning_text reasoning_opaque model
      `.match(/\w+/g)!,
  );
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(null, 0, 1, -1, "stop", "tool_calls", "{}", ""),
      word,
      fc.array(tie("json"), { maxLength: 2 }),
      fc.dictionary(word, tie("json"), { maxKeys: 4 }),
    ),
  }));
  const chunk = fc.record(
    {
      id: json,
      choices: fc.oneof(
        json,
        fc.array(
          fc.record({ index: json, delta: fc.dictionary(word, json), finish_reason: json }, { requiredKeys: [] }),
        ),
      ),
      usage: json,
    },
    { requiredKeys: [] },
  );
  const frame = fc.oneof(
    chunk.map((value) => ({ data: JSON.stringify(value) })),
    fc.string().map((data) => ({ data })),
    fc.constant({ data: "[DONE]" }),
    fc.constant({}),
  );
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 8 }), (frames) => {
      const booked = meaningOf(run(reads(chat), frames)).end.type;
      const asked: ReplyContext = { model: "m", usage: true, replies: 1 };
      const arrived = decodeFrames(
        chat,
        written(
          passes(chat, asked, () => {}),
          frames,
        ),
      );
      expect(meaningOf(arrived).end.type).toBe(booked);
    }),
    { numRuns: triesOf(1000) },
  );
  fc.assert(
    fc.property(fc.oneof(chunk, json), (body) => void meaningOf(chat.decodeReply(body))),
    { numRuns: triesOf(500) },
  );
});

describe("a request through the hub and back", () => {
  const words = fc.string({ minLength: 1, maxLength: 8, unit: "grapheme" });
  const key = fc.constantFrom("x_future", "safety_identifier", "verbosity", "__proto__", "constructor");
  const unknown = fc.dictionary(key, fc.oneof(fc.boolean(), words, fc.constant({ a: [1, null] })), { maxKeys: 2 });
  const id = fc.stringMatching(/^call_[a-z0-9]{1,12}$/);
  const textPart = fc.record({ type: fc.constant("text"), text: words });
  const imagePart = fc.constantFrom(
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
    { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low", media_type: "image/png" } },
  );
  const filePart = fc.constant({
    type: "file",
    file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBE", x: 1 },
  });
  const foreignPart = fc.constantFrom(
    { type: "input_audio", input_audio: { data: "UklG", format: "wav" } },
    { type: "video", x: 1 },
  );
  const part = fc.oneof(textPart, imagePart, filePart, foreignPart);
  const withUnknown = <T extends object>(value: fc.Arbitrary<T>) =>
    fc.tuple(value, unknown).map(([each, extra]) => Object.assign(Object.create(null), each, extra) as T);
  const list = (item: fc.Arbitrary<object>) => fc.array(withUnknown(item), { minLength: 2, maxLength: 3 });
  const spoken = (item: fc.Arbitrary<object>) => fc.oneof(words, list(item));
  const message = (
    record: Record<string, fc.Arbitrary<unknown>>,
    optional: Record<string, fc.Arbitrary<unknown>> = {},
  ) => withUnknown(fc.record({ ...record, ...optional }, { requiredKeys: Object.keys(record) }));
  const name = fc.stringMatching(/^[a-z]{1,8}$/);

  const system = message({ role: fc.constantFrom("system"), content: spoken(textPart) }, { name });
  const asks = message({ role: fc.constant("user"), content: spoken(part) }, { name });
  const thinking = fc.record({ reasoning_text: words, reasoning_opaque: words }, { requiredKeys: [] });
  const says = fc
    .tuple(
      message(
        { role: fc.constant("assistant"), content: spoken(textPart) },
        { refusal: words, audio: fc.constant({ id: "a" }) },
      ),
      thinking,
    )
    .map(([each, thought]) => ({ ...each, ...thought }));
  const call = message({
    id,
    type: fc.constant("function"),
    function: fc.record(
      { name, arguments: fc.constantFrom("{}", '{"a": 1}', "", "not json"), x: fc.constant(1) },
      { requiredKeys: ["name", "arguments"] },
    ),
  });
  const acts = fc
    .tuple(
      fc.option(words),
      thinking,
      fc.uniqueArray(call, { minLength: 1, maxLength: 3, selector: (each) => each.id }),
      spoken(textPart),
    )
    .map(([content, thought, tool_calls, result]) => [
      { role: "assistant", content, ...thought, tool_calls },
      ...tool_calls.map((each) => ({ role: "tool", tool_call_id: each.id, content: result, name: "f" })),
    ]);
  const functionTool = message({
    type: fc.constant("function"),
    function: fc.record(
      {
        name,
        description: words,
        parameters: fc.constantFrom(
          { type: "object", properties: {} },
          { type: "object", properties: { a: {} }, $schema: "x" },
        ),
        strict: fc.boolean(),
        x: fc.constant(1),
      },
      { requiredKeys: ["name", "parameters"] },
    ),
  });
  const customTool = fc.record({
    type: fc.constant("custom"),
    custom: fc.record({
      name,
      format: fc.constant({ type: "grammar", grammar: { syntax: "lark", definition: "start: x" } }),
    }),
  });
  const hostedTool = fc.constant({ type: "web_search", search_context_size: "low" });
  const hasOwnIds = (calls: JsonObject[]) => new Set(calls.map(({ id }) => id)).size === calls.length;
  const request = withUnknown(
    fc.record(
      {
        model: fc.constant("gpt-4.1"),
        messages: fc
          .array(
            fc.oneof(
              system.map((each) => [each]),
              asks.map((each) => [each]),
              says.map((each) => [each]),
              acts,
            ),
            { maxLength: 5 },
          )
          .map((runs) => runs.flat() as JsonObject[])
          // Of calls that share an id all but the first get another.
          .filter((messages) => hasOwnIds(messages.flatMap((each) => (each.tool_calls as JsonObject[]) ?? []))),
        stream: fc.boolean(),
        tools: fc.array(fc.oneof(functionTool, customTool, hostedTool), { minLength: 1, maxLength: 3 }),
        tool_choice: fc.constantFrom(
          "auto",
          "none",
          "required",
          { type: "function", function: { name: "unlisted" } },
          {
            type: "allowed_tools",
            allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "unlisted" } }] },
          },
        ),
        parallel_tool_calls: fc.boolean(),
        max_tokens: fc.integer({ min: 4_001, max: 16_384 }),
        stop: fc.array(words, { minLength: 1, maxLength: 4 }),
        temperature: fc.double({ min: 0, max: 2, noNaN: true }),
        top_p: fc.double({ min: 0, max: 1, noNaN: true }),
        reasoning_effort: fc.constantFrom("low", "high"),
        thinking_budget: fc.integer({ min: 1024, max: 4000 }),
        response_format: fc.constantFrom(
          { type: "json_object" },
          { type: "grammar", x: 1 },
          {
            type: "json_schema",
            json_schema: { name: "a", description: "b", schema: { type: "object" }, strict: null },
          },
          { type: "json_schema", json_schema: { name: "a", schema: {}, strict: true } },
        ),
        n: fc.constant(1),
        seed: fc.integer(),
        user: words,
        logit_bias: fc.constant({ "50256": -100 }),
        presence_penalty: fc.constant(0.5),
        prediction: fc.constant({ type: "content", content: "x" }),
      },
      { requiredKeys: ["model", "messages", "stream"] },
    ),
  );

  /** What means nothing: `n` of 1, members that are null, how to use no tools, the usage that every stream is asked for. */
  const plain = (body: unknown): unknown => {
    const said = JSON.parse(JSON.stringify(body), (name, value) =>
      value === null || (name === "n" && value === 1) || name === "stream_options" ? undefined : value,
    ) as JsonObject;
    if (Array.isArray(said.tools) && said.tools.length > 0) return said;
    const { tools: _, parallel_tool_calls: __, tool_choice: choice, ...rest } = said;
    return choice === undefined || choice === "auto" || choice === "none" ? rest : { ...rest, tool_choice: choice };
  };

  test("a request through the hub and back is the same request", () => {
    fc.assert(
      fc.property(request, (body) => {
        const text = JSON.stringify(body);
        const { body: back } = encode(chat.decodeRequest(JSON.parse(text)), versatile);
        expect(plain(back)).toEqual(plain(JSON.parse(text)));
      }),
      { numRuns: triesOf(500) },
    );
  });

  test("needs none of the fixups that a request that passes through would get, and a fixed one needs no more", () => {
    fc.assert(
      fc.property(request, fc.constantFrom(gpt, gpt5, claude, gemini), (given, model) => {
        const { body: once } = fixRequest(chat, JSON.parse(JSON.stringify(given)), model);
        expect(fixRequest(chat, once, model).fixups).toEqual([]);
        try {
          expect(fixRequest(chat, encode(chat.decodeRequest(given), model).body, model).fixups).toEqual([]);
        } catch (thrown) {
          if (!(thrown instanceof ProxyError)) throw thrown;
        }
      }),
      { numRuns: triesOf(300) },
    );
  });
});

test("a request passed through is repaired by forgetting its thinking, which another account may not be able to read", () => {
  const said = { role: "assistant", content: "!" };
  const messages = [user("?"), { ...said, reasoning_text: "Hm.", reasoning_opaque: "c2ln" }];
  expect(chat.remedies.repair({ model: "m", messages }, () => true)).toEqual({
    model: "m",
    messages: [user("?"), said],
  });
});

test("a request passed through knows what its reply must be fixed to", () => {
  expect(contextOf({ model: "m", stream_options: { include_usage: true }, n: 3 })).toEqual({
    model: "m",
    usage: true,
    replies: 3,
  });
  expect(contextOf({ model: "m" })).toEqual({ model: "m", usage: false, replies: 1 });
});

test("the end of an object is found wherever its pieces begin", () => {
  const json = fc.dictionary(fc.string(), fc.jsonValue()).map((object) => JSON.stringify(object));
  const signs = fc.array(fc.constantFrom(...'{}[]":,\\a1 \u00a0')).map((all) => all.join(""));
  const pieces = fc.array(fc.oneof(json, signs), { maxLength: 3 }).map((texts) => texts.join(""));
  fc.assert(
    fc.property(pieces, fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 3 }), (text, size, asks) => {
      const end = new ObjectEnd();
      for (let at = 0; at < text.length; at += size) {
        const soFar = text.slice(0, at + size);
        end.add(text.slice(at, at + size));
        if ((at / size) % asks === 0)
          expect([soFar, end.isReached(soFar)]).toEqual([soFar, isObject(parseJson(soFar))]);
      }
    }),
    { numRuns: triesOf(300) },
  );
});
