/** Pairs: Chat, from the folders `fixtures/chat-*`, and rows of what is read, written and passed on. */

import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { chat } from "../../src/dialects/chat/codec";
import { contextOf } from "../../src/dialects/chat/fixups";
import { ObjectEnd } from "../../src/dialects/chat/object-end";
import type { ReplyContext } from "../../src/dialects/codec";
import type { Conversation, JsonObject, Part, Turn } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { messages } from "../../src/dialects/messages/codec";
import { responses } from "../../src/dialects/responses/codec";
import { ProxyError } from "../../src/lib/errors";
import { isObject, parseJson } from "../../src/lib/json";
import { jsonOf, readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { chunkSizes } from "../support/differential";
import { ableModel } from "../support/facts";
import { checkChatStream } from "../support/grammar-chat";
import fc, { triesOf } from "../support/random";
import { expectSameReply, meaningOf } from "../support/reply-grammar";
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
const thoughtless: ModelFacts = { ...gpt, supports: { ...supports, efforts: [] } };
const versatile: ModelFacts = {
  ...gpt,
  supports: { ...supports, efforts: ["none", "low", "high"], thinkingBudget: { min: 1024, max: 32_000 } },
};
const wordy: ModelFacts = { ...gpt, supports: { ...supports, structuredOutputs: false } };
const gemini: ModelFacts = { ...gpt, id: "gemini-2.5-pro", vendor: "Google" };

const user = (content: unknown) => ({ role: "user", content });
const conversation = (...turns: Turn[]): Conversation => ({ model: "m", turns, tools: [], stream: true });
const turn = (role: Turn["role"], ...parts: Part[]): Turn => ({ role, parts });
const text = (words: string): Part => ({ kind: "text", text: words });
const encode = (given: Conversation, model = gpt) => chat.encodeRequest(given, model);
const sent = (given: Conversation, model = gpt) => encode(given, model).body.messages;

describe("what Copilot's streams and replies are like", () => {
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

  describe.each(quirks.filter((folder) => hasFixture(folder, "chat.stream.txt")))("%s", (folder) => {
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
  });

  test.each(quirks.filter((folder) => hasFixture(folder, "chat.reply.json")))("%s as a full reply", (folder) => {
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
  });

  function modelIn(stream: Uint8Array): string {
    const [, name] = /"model":"([^"]+)"/.exec(new TextDecoder().decode(stream)) ?? [];
    return name ?? "";
  }

  function hasDone(stream: Uint8Array): boolean {
    return new TextDecoder().decode(stream).includes("[DONE]");
  }
});

test("the bill keeps the model it names, the chunk around it gets the client's name for it", () => {
  const frames = run(readSse, [bytesAt("chat-bill-with-model", "chat.stream.txt")]);
  const out = written(
    passes(chat, { model: "gpt-4o-mini", usage: true, replies: 1 }, () => {}),
    frames,
  );
  const bill = { token_details: [{ model: "gpt-4o-mini-2024-07-18" }], total_nano_aiu: 5 };
  expect(jsonOf(out.at(-2)!)).toMatchObject({ model: "gpt-4o-mini", copilot_usage: bill });
});

test("split choices finish with tool_calls when one of them says so", () => {
  const choice = (finish_reason: string) => ({ finish_reason, message: { role: "assistant", content: "a" } });
  const reply = { choices: [choice("tool_calls"), choice("stop")] };
  expect(chat.decodeReply(reply).at(-1)).toMatchObject({ raw: "tool_calls" });
  expect(passesFull(chat, reply, { model: "", usage: true, replies: 1 }, () => {})).toMatchObject({
    choices: [{ finish_reason: "tool_calls" }],
  });
});

test("content in parts, as of Mistral's models that think, is thoughts and text", () => {
  const thought = (text: string) => ({ type: "thinking", thinking: [{ type: "text", text }] });
  const said = (text: string) => ({ type: "text", text });
  const blocks = [
    { kind: "thinking", text: "Two and two." },
    { kind: "text", text: "Four." },
  ];
  const message = { role: "assistant", content: [thought("Two and two."), said("Four.")] };
  const reply = { id: "c", model: "m", choices: [{ index: 0, message, finish_reason: "stop" }] };
  expect(meaningOf(chat.decodeReply(reply)).blocks).toEqual(blocks);
  const contents = ["", [thought("Two and ")], [thought("two.")], [said("Fo")], "ur."];
  const frames = contents.map((content, at) => {
    const delta = { ...(at === 0 && { role: "assistant" }), content };
    return { data: JSON.stringify({ id: "c", model: "m", choices: [{ index: 0, delta, finish_reason: null }] }) };
  });
  const end = { data: JSON.stringify({ id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) };
  expect(meaningOf(decodeFrames(chat, [...frames, end, { data: "[DONE]" }])).blocks).toEqual(blocks);
});

test("citations of a search that the upstream ran reach clients of every dialect", () => {
  const cited = { url: "https://a.example/", title: "A", start_index: 4, end_index: 7 };
  const annotations = [{ type: "url_citation", url_citation: cited }];
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    data: JSON.stringify({ id: "c", model: "m", choices: [{ index: 0, delta, finish_reason }] }),
  });
  const frames = [
    chunk({ role: "assistant", content: "See " }),
    chunk({ content: "[A]", annotations }),
    chunk({}, "stop"),
  ];
  const message = { role: "assistant", content: "See [A]", annotations };
  const full = chat.decodeReply({ id: "c", model: "m", choices: [{ index: 0, message, finish_reason: "stop" }] });
  for (const events of [full, decodeFrames(chat, [...frames, { data: "[DONE]" }])]) {
    const asked = responses.decodeRequest({ model: "m", input: "Hi" });
    const { output } = responses.encodeReply(events, asked) as { output: { content: object[] }[] };
    expect(output[0]!.content[0]).toMatchObject({ annotations: [{ type: "url_citation", ...cited }] });
    const { content } = messages.encodeReply(events, messages.decodeRequest({ model: "m", messages: [user("Hi")] }));
    expect(content).toMatchObject([
      { citations: [{ type: "web_search_result_location", url: cited.url, title: "A" }] },
    ]);
    expect(chat.encodeReply(events, conversation()).choices).toMatchObject([{ message: { annotations } }]);
  }
});

describe("an upstream that writes an empty finish reason", () => {
  const chunk = (delta: object, finish_reason: string | null = "") => ({
    data: JSON.stringify({
      ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "m" },
      choices: [{ index: 0, delta, finish_reason }],
    }),
  });
  const done = { data: "[DONE]" };
  const call = (args: string) => ({
    tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "look", arguments: args } }],
  });
  const end = (frames: SseFrame[]) => decodeFrames(chat, frames).at(-1);

  test("has not ended its reply", () => {
    expect(end([chunk({ content: "Hel" })])).toMatchObject({ type: "error", code: "upstream_disconnected" });
    expect(end([chunk(call('{"at"'))])).toMatchObject({ type: "error", code: "upstream_disconnected" });
    expect(end([chunk({ content: "Hello" }), chunk({}, "length"), chunk({}), done])).toMatchObject({
      type: "finish",
      reason: "length",
    });
    const asked: ReplyContext = { model: "m", usage: true, replies: 1 };
    const passed = (frames: SseFrame[]) =>
      overWire(
        written(
          passes(chat, asked, () => {}),
          frames,
        ),
      );
    expect(jsonOf(passed([chunk({ content: "Hel" })]).at(-1)!)).toMatchObject({
      error: { code: "upstream_disconnected" },
    });
    const out = passed([chunk({ content: "Hello" }), chunk({}, "stop"), done]);
    expect(out.slice(0, -1).map((frame) => (jsonOf(frame) as { choices: object[] }).choices[0])).toMatchObject([
      { finish_reason: null },
      { finish_reason: "stop" },
    ]);
  });

  test("has the reason in a full reply that its content shows", () => {
    const whole = (message: object) => ({ id: "c", model: "m", choices: [{ index: 0, message, finish_reason: "" }] });
    const calls = call("{}").tool_calls;
    for (const [message, reason] of [
      [{ role: "assistant", content: "Hi." }, "stop"],
      [{ role: "assistant", content: null, tool_calls: calls }, "tool_calls"],
    ] as const) {
      const fixed = passesFull(chat, whole(message), { model: "m", usage: true, replies: 1 }, () => {});
      expect(fixed.choices).toMatchObject([{ finish_reason: reason }]);
      expect(chat.decodeReply(whole(message)).at(-1)).toEqual({
        type: "finish",
        reason: reason === "stop" ? "stop" : "tool-call",
      });
    }
  });
});

test("the older function call of an upstream is a call, whole and in pieces", () => {
  const call = { name: "look", arguments: '{"at":1}' };
  const block = { kind: "tool-call", name: "look", text: '{"at":1}' };
  const whole = chat.decodeReply({
    ...{ id: "c1", model: "m" },
    choices: [
      { index: 0, message: { role: "assistant", content: null, function_call: call }, finish_reason: "function_call" },
    ],
  });
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    data: JSON.stringify({ id: "c1", model: "m", choices: [{ index: 0, delta, finish_reason }] }),
  });
  const streamed = decodeFrames(chat, [
    chunk({ role: "assistant", content: "", function_call: { name: "look", arguments: "" } }),
    chunk({ function_call: { arguments: '{"at"' } }),
    chunk({ function_call: { arguments: ":1}" } }),
    chunk({}, "function_call"),
    { data: "[DONE]" },
  ]);
  for (const events of [whole, streamed]) {
    const { blocks, end } = meaningOf(events);
    expect(blocks).toMatchObject([{ ...block, id: expect.stringMatching(/^call_\w+$/) }]);
    expect(end).toMatchObject({ reason: "tool-call" });
  }
  const calls = [{ id: "a", type: "function", function: { name: "look", arguments: "{}" } }];
  const both = { role: "assistant", content: null, tool_calls: calls, function_call: call };
  const twice = chat.decodeReply({
    id: "c1",
    model: "m",
    choices: [{ index: 0, message: both, finish_reason: "stop" }],
  });
  expect(meaningOf(twice).blocks).toMatchObject([{ id: "a" }]);
});

describe("errors in a stream", () => {
  const errorOf = (folder: string) => decode(chat, [bytesAt(folder, "chat.stream.txt")]).at(-1);

  test("keep the upstream's code and words", () => {
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

  test("reach the client as a chunk with `error`, and no [DONE]", () => {
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

  test("leave no trace after the end: later frames, beats and failures are nothing", () => {
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

  test("an upstream that says nothing at all is a failure", () => {
    expect(run(reads(chat), [])).toEqual([expect.objectContaining({ type: "error", code: "upstream_disconnected" })]);
    expect(chat.decodeReply({ choices: [] })).toEqual([
      expect.objectContaining({ type: "error", code: "upstream_bad_reply" }),
    ]);
    for (const body of [null, [], "x", 1, {}, { choices: null }])
      expect(chat.decodeReply(body)).toEqual([expect.objectContaining({ type: "error" })]);
    expect(chat.decodeReply({ error: { message: "No.", code: "nope" } })).toEqual([
      { type: "error", code: "nope", message: "No." },
    ]);
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
});

describe("several replies to one request", () => {
  const stream = [0, 1].flatMap((index) => [
    {
      data: JSON.stringify({
        id: "a",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index, delta: { role: "assistant", content: `${index}` } }],
      }),
    },
    {
      data: JSON.stringify({
        id: "a",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index, delta: {}, finish_reason: "stop" }],
      }),
    },
  ]);

  test("a finish reason named like a member of every object is an end like any other", () => {
    for (const finish_reason of ["constructor", "__proto__", "toString"])
      expect(chat.decodeReply({ choices: [{ finish_reason, message: { content: "a" } }] }).at(-1)).toEqual({
        type: "finish",
        reason: "stop",
        raw: finish_reason,
      });
  });

  test("several replies to one request stay apart when they are passed on", () => {
    const frames = [...stream, { data: "[DONE]" }];
    expect(
      written(
        passes(chat, { model: "m", usage: true, replies: 2 }, () => {}),
        frames,
      ),
    ).toEqual(frames);
    const reply = {
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [0, 1].map((index) => ({ index, finish_reason: "stop", message: { role: "assistant", content: "a" } })),
    };
    expect(passesFull(chat, reply, { model: "m", usage: true, replies: 2 }, () => {})).toBe(reply);
  });

  test("several replies to one request cannot be translated", () => {
    const asked = chat.decodeRequest({ model: "m", messages: [user("Hi")], n: 2 });
    expect(() => encode(asked)).toThrow("`n` must be 1");
    expect(encode(chat.decodeRequest({ model: "m", messages: [user("Hi")], n: 1 })).body).not.toHaveProperty("n");
  });
});

describe("a reply written for a chat client", () => {
  const reply = (...blocks: ReplyEvent[]): ReplyEvent[] => [
    { type: "start", id: "", model: "other" },
    ...blocks,
    { type: "usage", usage: { input: 10, cachedInput: 4, output: 5, reasoning: 2 } },
    { type: "finish", reason: "stop" },
  ];
  const hello: ReplyEvent[] = [
    { type: "block-start", block: { kind: "text" } },
    { type: "block-delta", text: "Hello" },
    { type: "block-end" },
  ];
  const chunksTo = (asked: Conversation, events: ReplyEvent[]) =>
    written(chat.encodeStream(asked), events).map((frame) =>
      frame.data === "[DONE]" ? frame.data : (jsonOf(frame) as JsonObject),
    );

  test("bears an id of its own and the model's name the client used", () => {
    const body = chat.encodeReply(reply(...hello), conversation());
    expect(body).toMatchObject({ object: "chat.completion", model: "m", id: expect.stringMatching(/^chatcmpl-/) });
    for (const chunk of chunksTo(conversation(), reply(...hello)).slice(0, -1))
      expect(chunk).toMatchObject({ model: "m", object: "chat.completion.chunk" });
  });

  test("a reply written for a chat client sends a usage chunk only if it was requested", () => {
    const asked = chat.decodeRequest({
      model: "m",
      messages: [user("Hi")],
      stream: true,
      stream_options: { include_usage: true },
    });
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    expect(chunksTo(asked, reply(...hello)).at(-2)).toMatchObject({ choices: [], usage });
    expect(chunksTo(conversation(), reply(...hello)).at(-2)).toMatchObject({ choices: [{ finish_reason: "stop" }] });
    expect(chat.encodeReply(reply(...hello), conversation())).toMatchObject({ usage });
  });

  test("a reply written for a chat client shows thinking as reasoning_text, its foreign proof packed", () => {
    const events = reply(
      { type: "block-start", block: { kind: "thinking" } },
      { type: "block-delta", text: "Hm." },
      { type: "block-end", signature: { dialect: "messages", value: "c2ln" } },
      ...hello,
    );
    const packed = "dragoman.messages.~SG0u.c2ln";
    expect(chat.encodeReply(events, conversation())).toMatchObject({
      choices: [{ message: { reasoning_text: "Hm.", reasoning_opaque: packed, content: "Hello" } }],
    });
    const deltas = chunksTo(conversation(), events).flatMap((chunk) =>
      typeof chunk === "string" ? [] : (chunk.choices as JsonObject[]).map((choice) => choice.delta),
    );
    expect(deltas).toContainEqual({ reasoning_text: "Hm." });
    expect(deltas).toContainEqual({ reasoning_opaque: packed });
  });

  test("numbers parallel calls and writes {} for a call without arguments", () => {
    const call = (id: string): ReplyEvent[] => [
      { type: "block-start", block: { kind: "tool-call", id, name: "f" } },
      { type: "block-end" },
    ];
    const chunks = chunksTo(conversation(), reply(...call("a"), ...call("b")));
    const pieces = chunks.flatMap((chunk) =>
      typeof chunk === "string"
        ? []
        : (chunk.choices as { delta: { tool_calls?: JsonObject[] } }[]).flatMap(
            (choice) => choice.delta.tool_calls ?? [],
          ),
    );
    expect(pieces).toEqual([
      { index: 0, id: "a", type: "function", function: { name: "f", arguments: "" } },
      { index: 0, function: { arguments: "{}" } },
      { index: 1, id: "b", type: "function", function: { name: "f", arguments: "" } },
      { index: 1, function: { arguments: "{}" } },
    ]);
  });

  test("a reply written for a chat client says content_filter for a refusal without words, and stop for one in words", () => {
    const refused: ReplyEvent[] = [
      { type: "start", id: "", model: "" },
      { type: "finish", reason: "refusal" },
    ];
    expect(chat.encodeReply(refused, conversation())).toMatchObject({ choices: [{ finish_reason: "content_filter" }] });
    const inWords: ReplyEvent[] = [
      refused[0]!,
      { type: "block-start", block: { kind: "text", refusal: true } },
      { type: "block-delta", text: "No." },
      { type: "block-end" },
      refused[1]!,
    ];
    expect(chat.encodeReply(inWords, conversation())).toMatchObject({
      choices: [{ message: { refusal: "No.", content: null }, finish_reason: "stop" }],
    });
  });

  test("a reply written for a chat client leaves out blocks only another dialect has", () => {
    const events = reply(
      {
        type: "block-start",
        block: { kind: "foreign", dialect: "messages", value: { type: "web_search_tool_result" } },
      },
      { type: "block-end" },
      ...hello,
    );
    expectSameReply(chat.decodeReply(chat.encodeReply(events, conversation())), reply(...hello));
    expectSameReply(
      decodeFrames(chat, written(chat.encodeStream(conversation()), events)),
      reply(...hello)
        .map((event) => event)
        .filter((event) => event.type !== "usage"),
    );
  });

  test("a failure speaks the dialect's words, before the first word and after", () => {
    const told = { type: "error", code: "timeout", message: "Too late." } as const;
    const frame = { error: { message: "Too late.", type: "timeout_error", param: null, code: "timeout" } };
    expect(written(chat.encodeStream(conversation()), [told]).map(jsonOf)).toEqual([frame]);
    expect(jsonOf(written(chat.encodeStream(conversation()), [...reply(...hello).slice(0, 3), told]).at(-1)!)).toEqual(
      frame,
    );
  });

  test("an error is written in OpenAI's form", () => {
    const error = new ProxyError("not_found", "There is no such model.", { code: "model_not_found", param: "model" });
    expect(chat.encodeError(error, "r1")).toEqual({
      error: {
        message: "There is no such model.",
        type: "invalid_request_error",
        param: "model",
        code: "model_not_found",
      },
    });
  });
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
        const { body: once } = chat.fixRequest(JSON.parse(JSON.stringify(given)), model);
        expect(chat.fixRequest(once, model).fixups).toEqual([]);
        try {
          expect(chat.fixRequest(encode(chat.decodeRequest(given), model).body, model).fixups).toEqual([]);
        } catch (thrown) {
          if (!(thrown instanceof ProxyError)) throw thrown;
        }
      }),
      { numRuns: triesOf(300) },
    );
  });

  test("each run of tool messages is a turn of its own", () => {
    const call = (each: string) => ({
      role: "assistant",
      content: null,
      tool_calls: [{ id: each, type: "function", function: { name: "f", arguments: "{}" } }],
    });
    const result = (each: string) => ({ role: "tool", tool_call_id: each, content: each });
    const messages = [call("a"), result("a"), call("b"), result("b"), user("Thanks.")];
    const { turns } = chat.decodeRequest({ model: "m", messages });
    expect(turns.map(({ role, parts }) => [role, ...parts.map((each) => each.kind)])).toEqual([
      ["assistant", "tool-call"],
      ["user", "tool-result"],
      ["assistant", "tool-call"],
      ["user", "tool-result"],
      ["user", "text"],
    ]);
  });

  test("a field that cannot be read is named", () => {
    const param = (body: unknown) => {
      try {
        chat.decodeRequest(body);
      } catch (thrown) {
        return thrown instanceof ProxyError ? thrown.details.param : thrown;
      }
    };
    expect(param({ messages: [] })).toBe("model");
    expect(param({ model: "m" })).toBe("messages");
    expect(param({ model: "m", messages: [null] })).toBe("messages[0]");
    expect(param({ model: "m", messages: [{ role: "wizard", content: "x" }] })).toBe("messages[0].role");
    expect(param({ model: "m", messages: [user(5)] })).toBe("messages[0].content");
    expect(param({ model: "m", messages: [user("x")], stream: "true" })).toBe("stream");
    expect(param({ model: "m", messages: [user("x")], max_tokens: -1 })).toBe("max_tokens");
    expect(param({ model: "m", messages: [user("x")], functions: [] })).toBe("functions");
    expect(param({ model: "m", messages: [user("x")], tools: [{ type: "function", function: {} }] })).toBe(
      "tools[0].function.name",
    );
  });
});

describe("a request for a chat upstream", () => {
  const call = (id: string): Part => ({ kind: "tool-call", id, name: "f", input: "{}" });
  const result = (id: string, ...parts: Part[]): Part => ({ kind: "tool-result", id, parts });
  const image: Part = { kind: "image", source: { mediaType: "image/png", base64: "AA==" } };

  test("a request for a chat upstream answers every call directly after it, and nothing else", () => {
    const broken = conversation(
      turn("user", text("Go.")),
      turn("assistant", call("a"), call("b")),
      turn("user", text("Stop!")),
      turn("user", result("b", text("late")), result("x", text("orphan"))),
    );
    const { body, dropped } = encode(broken);
    expect((body.messages as JsonObject[]).map((message) => [message.role, message.tool_call_id ?? ""])).toEqual([
      ["user", ""],
      ["assistant", ""],
      ["tool", "a"],
      ["tool", "b"],
      ["user", ""],
      ["user", ""],
    ]);
    expect((body.messages as JsonObject[]).at(-1)!.content).toBe("Result of the earlier tool call x:\norphan");
    expect(dropped).toEqual(["calls and results without each other"]);
  });

  test("a request for a chat upstream finds a result that came late, and knows calls of one id apart", () => {
    const late = conversation(
      turn("assistant", call("a")),
      turn("user", text("Wait.")),
      turn("user", result("a", text("1"))),
      turn("assistant", call("a")),
      turn("user", result("a", text("2"))),
    );
    expect((sent(late) as JsonObject[]).map(({ content }) => content)).toEqual([null, "1", "Wait.", null, "2"]);
  });

  test("shortens the id of a call and of its result alike", () => {
    const long = "toolu_".padEnd(64, "x");
    const [asked, answer] = sent(
      conversation(turn("assistant", call(long)), turn("user", result(long, text("1")))),
    ) as [{ tool_calls: [{ id: string }] }, { tool_call_id: string }];
    expect(asked.tool_calls[0].id).toHaveLength(40);
    expect(answer.tool_call_id).toBe(asked.tool_calls[0].id);
  });

  test("speaks of the stream's options only when it streams", () => {
    const extra = { openai: { stream_options: { include_usage: true } } };
    expect(encode({ ...conversation(turn("user", text("?"))), stream: false, extras: extra }).body).not.toHaveProperty(
      "stream_options",
    );
  });

  test("a request for a chat upstream puts results before words of the same turn", () => {
    const mixed = conversation(turn("assistant", call("a")), turn("user", text("And?"), result("a", text("done"))));
    expect(sent(mixed)).toMatchObject([
      { role: "assistant" },
      { role: "tool", content: "done" },
      { role: "user", content: "And?" },
    ]);
  });

  test("a request for a chat upstream shows a result's picture to Claude in place, to others in the message behind", () => {
    const seen = conversation(turn("assistant", call("a")), turn("user", result("a", text("640"), image)));
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
    expect(sent(seen, claude)).toMatchObject([{}, { role: "tool", content: [{ type: "text", text: "640" }, picture] }]);
    expect(sent(seen, gpt)).toMatchObject([
      {},
      { role: "tool", content: "640" },
      { role: "user", content: [{ type: "text" }, picture] },
    ]);
  });

  test("a request for a chat upstream replaces an image by a note for a model without vision", () => {
    const blind = { ...gpt, supports: { ...supports, vision: false } };
    const { body, dropped } = encode(conversation(turn("user", image)), blind);
    expect(body.messages).toEqual([{ role: "user", content: "[An image, which this model cannot see.]" }]);
    expect(dropped).toEqual(["image"]);
  });

  test("a request for a chat upstream sends thinking home only", () => {
    const thought = (dialect: "chat" | "messages"): Part => ({
      kind: "thinking",
      text: "Hm.",
      signature: { dialect, value: "c2ln" },
    });
    const { body, dropped } = encode(
      conversation(
        turn("user", text("?")),
        turn("assistant", thought("messages"), thought("chat"), text("!")),
        turn("user", text("?")),
      ),
    );
    expect(body.messages).toMatchObject([
      {},
      { role: "assistant", content: "!", reasoning_text: "Hm.", reasoning_opaque: "c2ln" },
      {},
    ]);
    expect(dropped).toEqual(["thinking"]);
    const foreign = encode(
      conversation(turn("user", text("?")), turn("assistant", thought("messages")), turn("user", text("?"))),
    ).body.messages;
    expect(foreign).toEqual([user("?"), user("?")]);
  });

  test("a packed proof goes back to its maker", () => {
    const { turns } = chat.decodeRequest({
      model: "m",
      messages: [
        { role: "assistant", content: "!", reasoning_text: "Hm.", reasoning_opaque: "dragoman.messages..c2ln" },
      ],
    });
    expect(turns[0]?.parts[0]).toEqual({
      kind: "thinking",
      text: "Hm.",
      signature: { dialect: "messages", value: "c2ln" },
    });
  });

  test.each([
    ["effort as said", { effort: "high" }, gpt, { reasoning_effort: "high" }, []],
    [
      "effort lowered to what the model has",
      { effort: "max" },
      gpt,
      { reasoning_effort: "high" },
      ["reasoning_effort max changed to high"],
    ],
    ["effort as a budget where the model counts tokens", { effort: "medium" }, claude, { thinking_budget: 8000 }, []],
    ["budget as said", { budget: 5000 }, claude, { thinking_budget: 5000 }, []],
    [
      "budget raised to the least",
      { budget: 10 },
      claude,
      { thinking_budget: 1024 },
      ["thinking_budget 10 changed to 1024"],
    ],
    ["budget as an effort where the model knows words", { budget: 9000 }, gpt, { reasoning_effort: "medium" }, []],
    ["nothing where the model does not think", { effort: "high" }, thoughtless, {}, ["reasoning_effort"]],
    ["a budget where the model takes both", { budget: 5000 }, versatile, { thinking_budget: 5000 }, []],
    ["an effort where the model takes both", { effort: "low" }, versatile, { reasoning_effort: "low" }, []],
    ["no thinking, in so many words", { disabled: true }, versatile, { reasoning_effort: "none" }, []],
    ["no thinking, by not asking for any", { disabled: true }, claude, {}, []],
    [
      "how it is shown is nobody's business here",
      { effort: "low", summary: "auto" },
      gpt,
      { reasoning_effort: "low" },
      ["summary"],
    ],
  ] as const)("%s", (_, reasoning, model, wire, named) => {
    const { body, dropped } = encode({ ...conversation(turn("user", text("?"))), reasoning }, model);
    const { reasoning_effort, thinking_budget } = body;
    expect(JSON.parse(JSON.stringify({ reasoning_effort, thinking_budget }))).toEqual(wire);
    expect(dropped).toEqual([...named]);
  });

  test("a request for a chat upstream keeps to the model's limits, and says so", () => {
    const many = { ...conversation(turn("user", text("?"))), maxTokens: 128_000, stop: ["1", "2", "3", "4", "5"] };
    expect(encode(many, claude)).toMatchObject({
      body: { max_tokens: 32_000 },
      dropped: ["max_tokens lowered to 32000"],
    });
    expect(encode(many, gpt)).toMatchObject({
      body: { max_tokens: 16_384, stop: ["1", "2", "3", "4"] },
      dropped: ["max_tokens lowered to 16384", "stop after the first 4"],
    });
    expect(encode({ ...many, stream: false }, claude).body).toMatchObject({ max_tokens: 16_000, stream: false });
    expect(encode(many, gpt5).body).toMatchObject({ max_completion_tokens: 16_384 });
  });

  test("a cache mark in any place marks its message for Claude", () => {
    const mark = { cache_control: { type: "ephemeral" } };
    const tool_calls = [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }];
    const messages = [
      { role: "system", content: "Be brief.", copilot_cache_control: { type: "ephemeral" } },
      user([{ type: "text", text: "Go.", ...mark }]),
      { role: "assistant", content: null, tool_calls },
      { role: "tool", tool_call_id: "a", content: "done", ...mark },
    ];
    const { turns } = chat.decodeRequest({ model: "m", messages });
    expect(turns.map((each) => each.parts.at(-1)?.cache)).toEqual([true, true, undefined, true]);
    const marks = (sent(conversation(...turns), claude) as JsonObject[]).map((each) => each.copilot_cache_control);
    expect(marks).toEqual([{ type: "ephemeral" }, undefined, undefined, { type: "ephemeral" }]);
  });

  test("a request for a chat upstream names what has no word here", () => {
    const foreign: Conversation = {
      ...conversation(
        turn(
          "user",
          { kind: "text", text: "?", cache: true, extras: { anthropic: { citations: {} } } },
          { kind: "foreign", dialect: "messages", value: { type: "container_upload" } },
        ),
      ),
      tools: [{ kind: "foreign", dialect: "responses", value: { type: "web_search" } }],
      toolChoice: "auto",
      extras: { anthropic: { top_k: 5 }, openai: { truncation: "auto", store: false, include: [] } },
    };
    const { body, dropped } = encode(foreign);
    expect(body).toEqual({
      model: "gpt-4.1",
      messages: [user("?")],
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(dropped.sort()).toEqual([
      "cache_control",
      "citations",
      "container_upload",
      "store",
      "top_k",
      "truncation",
      "web_search",
    ]);
  });

  test("a request for a chat upstream refuses to leave out what was demanded", () => {
    const demanded: Conversation = {
      ...conversation(turn("user", text("?"))),
      tools: [{ kind: "foreign", dialect: "messages", value: { type: "web_search_20250305", name: "web_search" } }],
    };
    expect(() => encode({ ...demanded, toolChoice: { name: "web_search" } })).toThrow(
      "`tool_choice` asks for `web_search`",
    );
    expect(() => encode({ ...demanded, toolChoice: "required" })).toThrow("`tool_choice`");
    expect(() => encode({ ...demanded, extras: { openai: { tool_choice: { type: "web_search" } } } })).toThrow(
      "`tool_choice`",
    );
    const file: Part = { kind: "file", name: "a.pdf", mediaType: "application/pdf", base64: "AA==" };
    expect(() => encode(conversation(turn("user", file)), gemini)).toThrow("reads no files");
  });

  test("a request for a chat upstream gives a tool without parameters an empty list of them", () => {
    const tools: Conversation["tools"] = [
      { kind: "function", name: "a" },
      { kind: "function", name: "b", schema: { type: "object" } },
    ];
    const parameters = { type: "object", properties: {} };
    expect(encode({ ...conversation(turn("user", text("?"))), tools }).body.tools).toEqual([
      { type: "function", function: { name: "a", parameters } },
      { type: "function", function: { name: "b", parameters } },
    ]);
  });
});

describe("a request passed through", () => {
  const hi = { model: "gpt-4.1", messages: [user("Hi")] };
  const fixup = (body: JsonObject, model = gpt) => chat.fixRequest({ model: model.id, ...body }, model);
  /** The members that the fixups set, and those that they removed. */
  const changes = (given: JsonObject, fixed: JsonObject) => ({
    set: Object.fromEntries(Object.entries(fixed).filter(([name, value]) => value !== given[name])),
    remove: Object.keys(given).filter((name) => !(name in fixed)),
  });

  test("a request passed through needs nothing when nothing is wrong", () => {
    const plain = { ...hi, max_tokens: 10, temperature: 0, seed: 1 };
    expect(chat.fixRequest(plain, gpt)).toEqual({ body: plain, fixups: [], dropped: [] });
    expect(chat.fixRequest({ ...hi, stream: true, stream_options: { include_usage: true } }, gpt).fixups).toEqual([]);
  });

  test.each([
    ["model-name", { ...hi, model: "gpt-4.1-2025-04-14" }, gpt, { model: "gpt-4.1" }, []],
    [
      "max-tokens-name",
      { messages: [user("Hi")], max_tokens: 10 },
      gpt5,
      { max_completion_tokens: 10 },
      ["max_tokens"],
    ],
    [
      "max-tokens-name",
      { messages: [user("Hi")], max_completion_tokens: 10 },
      gpt,
      { max_tokens: 10 },
      ["max_completion_tokens"],
    ],
    [
      "max-tokens-limit",
      { messages: [user("Hi")], max_tokens: 128_000, stream: true, stream_options: { include_usage: true } },
      claude,
      { max_tokens: 32_000 },
      [],
    ],
    ["max-tokens-limit", { messages: [user("Hi")], max_tokens: 128_000 }, claude, { max_tokens: 16_000 }, []],
    ["usage-asked", { ...hi, stream: true }, gpt, { stream_options: { include_usage: true } }, []],
    [
      "usage-asked",
      { ...hi, stream: true, stream_options: { include_obfuscation: false } },
      gpt,
      { stream_options: { include_obfuscation: false, include_usage: true } },
      [],
    ],
    [
      "developer-role",
      { messages: [{ role: "developer", content: "Be brief." }, user("Hi")] },
      gpt,
      { messages: [{ role: "system", content: "Be brief." }, user("Hi")] },
      [],
    ],
    [
      "no-prefill",
      { messages: [user("Hi"), { role: "assistant", content: "He" }] },
      claude,
      { messages: [user("Hi"), { role: "assistant", content: "He" }, user("Please continue.")] },
      [],
    ],
    ["sampling", { messages: [user("Hi")], temperature: 1, top_p: 1 }, claude, {}, ["top_p"]],
    [
      "unsupported-fields",
      { ...hi, store: false, service_tier: "auto", metadata: {} },
      gpt,
      {},
      ["store", "service_tier", "metadata"],
    ],
    ["empty-text", { messages: [user("")] }, claude, { messages: [user(" ")] }, []],
    [
      "empty-text",
      {
        messages: [
          user([
            { type: "text", text: "" },
            { type: "text", text: "Hi" },
          ]),
        ],
      },
      claude,
      { messages: [user([{ type: "text", text: "Hi" }])] },
      [],
    ],
    [
      "cache-marks",
      { messages: [{ ...user("Hi"), cache_control: { type: "ephemeral" } }] },
      claude,
      { messages: [{ ...user("Hi"), copilot_cache_control: { type: "ephemeral" } }] },
      [],
    ],
    ["stop-limit", { ...hi, stop: ["1", "2", "3", "4", "5"] }, gpt, { stop: ["1", "2", "3", "4"] }, []],
    ["reasoning", { ...hi, reasoning_effort: "xhigh" }, gpt, { reasoning_effort: "high" }, []],
    [
      "reasoning",
      { messages: [user("Hi")], reasoning_effort: "low" },
      claude,
      { thinking_budget: 4000 },
      ["reasoning_effort"],
    ],
    ["reasoning", { ...hi, reasoning_effort: "low" }, thoughtless, {}, ["reasoning_effort"]],
    [
      "tool-schema",
      { ...hi, tools: [{ type: "function", function: { name: "a" } }] },
      gpt,
      { tools: [{ type: "function", function: { name: "a", parameters: { type: "object", properties: {} } } }] },
      [],
    ],
    [
      "structured-output",
      { messages: [{ role: "system", content: "Be brief." }, user("Hi")], response_format: { type: "json_object" } },
      wordy,
      {
        messages: [
          { role: "system", content: "Be brief." },
          { role: "system", content: "Answer without a code fence and with nothing but one JSON object." },
          user("Hi"),
        ],
      },
      ["response_format"],
    ],
    [
      "tool-results",
      { messages: [{ role: "assistant", content: null, tool_calls: [{ id: "a" }] }, user("Stop!")] },
      gpt,
      {
        messages: [
          { role: "assistant", content: null, tool_calls: [{ id: "a" }] },
          { role: "tool", tool_call_id: "a", content: "This call was never answered." },
          user("Stop!"),
        ],
      },
      [],
    ],
    [
      "tool-results",
      {
        messages: [
          { role: "tool", tool_call_id: "z", content: "early" },
          { role: "assistant", content: null, tool_calls: [{ id: "a" }] },
          { role: "tool", tool_call_id: "y", content: [{ type: "text", text: "lost" }] },
          { role: "tool", tool_call_id: "a", content: "1" },
          { role: "tool", tool_call_id: "a", content: "2" },
        ],
      },
      gpt,
      {
        messages: [
          user("Result of the earlier tool call z:\nearly"),
          { role: "assistant", content: null, tool_calls: [{ id: "a" }] },
          { role: "tool", tool_call_id: "a", content: "1" },
          user([
            { type: "text", text: "Result of the earlier tool call y:" },
            { type: "text", text: "lost" },
          ]),
          user("Result of the earlier tool call a:\n2"),
        ],
      },
      [],
    ],
    [
      "repeated-call-ids",
      {
        messages: [
          { role: "assistant", tool_calls: [{ id: "a".padEnd(40, "x") }] },
          { role: "tool", tool_call_id: "a".padEnd(40, "x"), content: "1" },
          { role: "assistant", tool_calls: [{ id: "a".padEnd(40, "x") }] },
          { role: "tool", tool_call_id: "a".padEnd(40, "x"), content: "2" },
        ],
      },
      claude,
      {
        messages: [
          { role: "assistant", tool_calls: [{ id: "a".padEnd(40, "x") }] },
          { role: "tool", tool_call_id: "a".padEnd(40, "x"), content: "1" },
          { role: "assistant", tool_calls: [{ id: `${"a".padEnd(38, "x")}_2` }] },
          { role: "tool", tool_call_id: `${"a".padEnd(38, "x")}_2`, content: "2" },
        ],
      },
      [],
    ],
    [
      "tool-images",
      {
        messages: [
          { role: "assistant", tool_calls: [{ id: "a" }, { id: "b" }] },
          { role: "tool", tool_call_id: "a", content: [{ type: "image_url", image_url: { url: "data:" } }] },
          { role: "tool", tool_call_id: "b", content: "b" },
        ],
      },
      gemini,
      {
        messages: [
          { role: "assistant", tool_calls: [{ id: "a" }, { id: "b" }] },
          { role: "tool", tool_call_id: "a", content: "See below." },
          { role: "tool", tool_call_id: "b", content: "b" },
          user([
            { type: "text", text: "From the result of a:" },
            { type: "image_url", image_url: { url: "data:" } },
          ]),
        ],
      },
      [],
    ],
  ] as const)("%s", (name, body, model, set, remove) => {
    const given: JsonObject = { model: model.id, ...(body as unknown as JsonObject) };
    const fixed = chat.fixRequest(given, model);
    expect<unknown>(changes(given, fixed.body)).toEqual({ set, remove: [...remove] });
    expect(fixed.fixups).toEqual([name]);
  });

  test("a request passed through names what was taken from who asked", () => {
    expect(fixup({ messages: [user("Hi")], metadata: { a: "b" }, service_tier: null }).dropped).toEqual(["metadata"]);
  });

  test("a request passed through takes the newer of two names for one limit", () => {
    const asked = { model: gpt5.id, messages: [user("Hi")], max_completion_tokens: 10 };
    expect(fixup({ ...asked, max_tokens: 5 }, gpt5)).toEqual({ body: asked, fixups: ["max-tokens-name"], dropped: [] });
  });

  test("marks at most two system messages and the last of the others", () => {
    const mark = { cache_control: { type: "ephemeral" } };
    const system = (content: string) => ({ role: "system", content: [{ type: "text", text: content, ...mark }] });
    const messages = [system("a"), system("b"), system("c"), { ...user("d"), ...mark }, user("e")];
    const { messages: marked } = fixup({ messages }, claude).body;
    expect((marked as JsonObject[]).map((message) => "copilot_cache_control" in message)).toEqual([
      false,
      true,
      true,
      false,
      true,
    ]);
    expect(JSON.stringify(marked)).not.toContain('"cache_control"');
  });

  test("rules about a prefill, both sampling parameters and empty text apply to Claude only", () => {
    expect(
      fixup({ messages: [user(""), { role: "assistant", content: "He" }], temperature: 1, top_p: 1 }, gpt).fixups,
    ).toEqual([]);
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
