/** Pairs: Responses, from the folders `fixtures/responses-*`, and rows of what is read, written and passed on. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import type { ReplyContext } from "../../src/dialects/codec";
import { cutReply } from "../../src/dialects/hub/block-lifecycle";
import type { Conversation, JsonObject, Part } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { responses } from "../../src/dialects/responses/codec";
import { repairForeignItems } from "../../src/dialects/responses/rules";
import { ProxyError } from "../../src/lib/errors";
import { isObject } from "../../src/lib/json";
import { jsonFrame, jsonOf, readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { collectInto, run } from "../../src/lib/net/stream/stream";
import { adapt } from "../support/adapt";
import { eventStream } from "../support/event-stream";
import { ableModel } from "../support/facts";
import { checkResponsesStream } from "../support/grammar-responses";
import fc, { triesOf } from "../support/random";
import { refusalOf } from "../support/refusal";
import { expectSameReply, meaningOf } from "../support/reply-grammar";
import {
  bytesAt,
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

/** What a client is told of a reply that was cut. */
const { isOurs: _isOurs, ...told } = cutReply;

const able = ableModel("some-model", "Azure OpenAI");
const model: ModelFacts = {
  ...able,
  dialects: ["responses"],
  limits: { output: 32_000 },
  supports: { ...able.supports, adaptiveThinking: false, thinkingBudget: undefined },
};
const boundless: ModelFacts = {
  ...model,
  limits: {},
  supports: { ...model.supports, efforts: ["none", "low", "max"] },
};
const asked: ReplyContext = { model: "gpt-5.1-2025-11-13", usage: true, replies: 1 };

const textAt = (folder: string, file: string) => readFileSync(join(fixtures, folder, file), "utf8");
const withFile = (file: string) =>
  readdirSync(fixtures).filter((name) => name.startsWith("responses-") && hasFixture(name, file));

const request = (members: JsonObject): JsonObject => ({ model: "some-model", input: "Hi.", ...members });
const decode = (members: JsonObject): Conversation => responses.decodeRequest(request(members));
const encode = (members: JsonObject) => responses.encodeRequest(decode(members), model);
const message = (role: string, text: string): JsonObject => ({
  type: "message",
  role,
  content: [{ type: role === "assistant" ? "output_text" : "input_text", text }],
});
const call: JsonObject = { type: "function_call", call_id: "call_1", name: "read_file", arguments: '{"path":"a"}' };
const output: JsonObject = { type: "function_call_output", call_id: "call_1", output: "contents" };

/** The client's request as it goes up when the dialects match. */
const passed = (body: JsonObject, facts = model, options?: { webSearch: boolean }): JsonObject =>
  responses.fixRequest(body, facts, options).body;

describe("a request passed through", () => {
  test.each(withFile("request.json"))("%s", (folder) => {
    const before = jsonAt(folder, "request.json");
    const options = { webSearch: folder !== "responses-web-search" };
    const { fixups } = responses.fixRequest(before, model, options);
    expect(passed(before, model, options)).toEqual(jsonAt(folder, "fixed.json"));
    expect(fixups).toEqual([folder.replace("responses-", "")]);
    expect(responses.fixRequest(passed(before, model, options), model, options).fixups).toEqual([]);
  });

  test("every fixup has a folder that proves its need", () => {
    const names = [...withFile("request.json"), ...withFile("stream.txt")].map((name) =>
      name.replace("responses-", ""),
    );
    expect([...new Set(names)].sort()).toEqual([
      ...[
        "background",
        "call-namespace",
        "call-pairs",
        "copilot-fields",
        "effort",
        "empty-output",
        "empty-tools",
        "error-event",
        "file-name",
      ],
      ...["foreign-event", "image-generation", "include-reasoning", "item-ids", "item-reference", "max-tokens-limit"],
      ...[
        "message-metadata",
        "model-name",
        "namespace-description",
        "own-searches",
        "repeated-call-ids",
        "repeated-item-ids",
      ],
      ...["response-id", "service-tier", "store", "strict-default"],
      ...["unsigned-reasoning", "web-search"],
    ]);
  });

  test("a request without a fault is passed through as it came", () => {
    const body = request({ input: [message("user", "Hi.")], store: false, include: ["reasoning.encrypted_content"] });
    const fixed = responses.fixRequest(body, model);
    expect(fixed).toEqual({ body, fixups: [], dropped: [] });
    expect(fixed.body).toBe(body);
  });

  test("a limit of a few tokens is raised to what OpenAI takes", () => {
    expect(passed(request({ max_output_tokens: 1 })).max_output_tokens).toBe(16);
    expect(passed(request({ max_output_tokens: 1 }), { ...model, vendor: "Google" }).max_output_tokens).toBe(1);
  });

  test("a full reply keeps to the limit that is for full replies", () => {
    const facts = { ...model, limits: { output: 32_000, fullOutput: 16_000 } };
    expect(passed(request({ max_output_tokens: 20_000 }), facts).max_output_tokens).toBe(16_000);
    expect(passed(request({ max_output_tokens: 20_000, stream: true }), facts).max_output_tokens).toBe(20_000);
  });

  test.each([
    ["previous_response_id", { previous_response_id: "resp_1" }, "previous_response_not_found"],
    ["conversation", { conversation: "conv_1" }, "unsupported_value"],
    ["prompt", { prompt: { id: "pmpt_1" } }, "unsupported_value"],
    ["background", { background: true }, "unsupported_value"],
  ])("%s is refused, because nothing is stored", (param, members, code) => {
    for (const act of [() => decode(members), () => responses.checkRequest(request(members))]) {
      const { status, details } = refusalOf(act);
      expect({ status, param: details.param, code: details.code }).toEqual({ status: 400, param, code });
    }
  });

  test("a request without input is refused with both types that an input may have", () => {
    for (const act of [() => decode({ input: undefined }), () => responses.checkRequest(request({ input: undefined }))])
      expect(refusalOf(act).message).toContain("`input` must be a string or an array");
  });

  test("nulls in their place are no refusal", () => {
    const nulls = { previous_response_id: null, conversation: null, prompt: null, background: null };
    expect(passed(request(nulls))).toEqual(expect.objectContaining({ previous_response_id: null }));
    expect(decode(nulls).turns).toHaveLength(1);
  });

  test("a choice of a tool that had to go is refused", () => {
    const tools = [{ type: "image_generation" }];
    for (const tool_choice of ["required", { type: "image_generation" }])
      expect(refusalOf(() => passed(request({ tools, tool_choice }))).details.param).toBe("tool_choice");
    expect(passed(request({ tools, tool_choice: "auto" })).tools).toBeUndefined();
  });
});

describe("a request read", () => {
  test("a string, a message without type and a message with type are the same turn", () => {
    const turns = [{ role: "user", parts: [{ kind: "text", text: "Hi." }] }];
    expect(decode({ input: "Hi." }).turns).toEqual(turns as Conversation["turns"]);
    expect(decode({ input: [{ role: "user", content: "Hi." }] }).turns).toEqual(turns as Conversation["turns"]);
    expect(decode({ input: [message("user", "Hi.")] }).turns).toEqual(turns as Conversation["turns"]);
  });

  test("what an assistant thinks, says and calls is one turn, results are another, messages stay apart", () => {
    const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "cHJvb2Y=" };
    const items = [
      message("user", "A"),
      message("user", "B"),
      reasoning,
      message("assistant", "C"),
      call,
      call,
      output,
    ];
    const { turns } = decode({
      input: [...items, output, message("user", "D"), message("assistant", "E"), message("assistant", "F")],
    });
    expect(turns.map(({ role, parts }) => [role, ...parts.map(({ kind }) => kind)].join(" "))).toEqual([
      "user text",
      "user text",
      "assistant thinking text tool-call tool-call",
      "user tool-result tool-result",
      "user text",
      "assistant text",
      "assistant text",
    ]);
  });

  test("thinking keeps its proof and the id it is bound to; another maker's comes unpacked", () => {
    const reasoning = (encrypted_content: unknown) => ({
      input: [{ type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content }],
    });
    const partOf = (members: JsonObject): Part | undefined => decode(members).turns[0]?.parts[0];
    const signature = { dialect: "responses", value: "cHJvb2Y=", id: "rs_1" };
    expect(partOf(reasoning("cHJvb2Y="))).toEqual({ kind: "thinking", text: "Hm.", signature } as Part);
    expect(partOf(reasoning("dragoman.messages..c2ln"))).toMatchObject({
      signature: { dialect: "messages", value: "c2ln" },
    });
    expect(encode(reasoning("cHJvb2Y=")).body.input).toEqual(reasoning("cHJvb2Y=").input);
    expect(encode(reasoning("dragoman.messages..c2ln"))).toMatchObject({ body: { input: [] }, dropped: ["thinking"] });
    expect(encode(reasoning(null))).toMatchObject({ body: { input: [] }, dropped: ["thinking"] });
  });

  test("a picture is not copied out of its data URL, and an address stays one", () => {
    const image = (image_url: string) => ({
      role: "user",
      content: [{ type: "input_image", image_url, detail: "high" }],
    });
    const sourceOf = (url: string) => decode({ input: [image(url)] }).turns[0]?.parts[0];
    expect(sourceOf("data:image/png;base64,AAAA")).toMatchObject({
      source: { mediaType: "image/png", base64: "AAAA" },
    });
    expect(sourceOf("https://example.com/a.png")).toMatchObject({ source: { url: "https://example.com/a.png" } });
  });

  test.each([
    ["null", null, "body"],
    ["a model that is a number", { model: 1, input: "" }, "model"],
    ["an input that is missing", { model: "m" }, "input"],
    ["an item that is null", { model: "m", input: [null] }, "input[0]"],
    ["a call without an id", { model: "m", input: [{ ...call, call_id: undefined }] }, "input[0].call_id"],
    ["content that is a number", { model: "m", input: [{ role: "user", content: 5 }] }, "input[0].content"],
    ["a stream that is a word", { model: "m", input: "", stream: "true" }, "stream"],
    ["no tokens at all", { model: "m", input: "", max_output_tokens: 0 }, "max_output_tokens"],
    ["a tool without a name", { model: "m", input: "", tools: [{ type: "function" }] }, "tools[0].name"],
  ])("%s is refused by its path", (_, body, param) => {
    expect(refusalOf(() => responses.decodeRequest(body)).details.param).toBe(param);
  });

  test("unknown items, parts, tools and types of JavaScript's own are never refused", () => {
    const input = [
      { type: "constructor", a: 1 },
      { type: "toString" },
      { role: "__proto__", content: "x" },
      { role: "user", content: [{ type: "input_audio", input_audio: {} }] },
    ];
    const { body } = encode({ input, tools: [{ type: "hasOwnProperty" }], tool_choice: { type: "mcp" } });
    expect(body.input).toEqual([...input.slice(0, 3), { type: "message", ...input[3] }]);
    expect(body.tools).toEqual([{ type: "hasOwnProperty" }]);
    expect(body.tool_choice).toEqual({ type: "mcp" });
  });
});

test("a namespace that a search has found is described by its name, too", () => {
  const spawn = { type: "function", name: "spawn", parameters: { type: "object", properties: {} }, strict: false };
  const found = (more: JsonObject) => [
    { type: "tool_search_call", execution: "client", call_id: "s1", status: "completed", arguments: {} },
    {
      type: "tool_search_output",
      execution: "client",
      call_id: "s1",
      tools: [{ type: "namespace", name: "n", ...more, tools: [spawn] }],
    },
  ];
  const body = (more: JsonObject) => ({ model: "some-model", store: false, input: found(more) });
  for (const empty of [{}, { description: "" }, { description: " " }])
    expect(passed(body(empty), model, { webSearch: true }).input).toEqual(found({ description: "n" }));
  expect(passed(body({ description: "All." }), model, { webSearch: true }).input).toEqual(
    found({ description: "All." }),
  );
});

test("a call of an earlier turn that was never answered does not get the result of a later call with its id", () => {
  const call = { type: "function_call", call_id: "t", name: "look", arguments: "{}" };
  const words = { type: "message", role: "user", content: [{ type: "input_text", text: "Wait." }] };
  const result = { type: "function_call_output", call_id: "t", output: "newest" };
  const body = { model: "some-model", store: false, input: [words, call, words, { ...call }, result] };
  const sent = passed(body, model, { webSearch: true }).input as JsonObject[];
  expect(sent.map(({ call_id, output }) => [call_id, output])).toEqual([
    [undefined, undefined],
    ["t", undefined],
    ["t", "This call was never answered."],
    [undefined, undefined],
    ["t_2", undefined],
    ["t_2", "newest"],
  ]);
});

test("a call of a tool without a namespace, with its own name as one, is a call of that tool", () => {
  const look = { type: "function", name: "look", parameters: { type: "object", properties: {} }, strict: false };
  const call = { type: "function_call", call_id: "c", name: "look", namespace: "look", arguments: "{}" };
  const namesIn = (body: JsonObject) =>
    decode(body).turns.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === "tool-call" ? part.name : [])));
  expect(namesIn({ tools: [look], input: [message("user", "Hi."), call] })).toEqual(["look"]);
  expect(namesIn({ input: [message("user", "Hi."), call] })).toEqual(["look"]);
  // A tool of a namespace that has its name is another one.
  const nested = { type: "namespace", name: "look", description: "Looks.", tools: [look] };
  expect(namesIn({ tools: [look, nested], input: [message("user", "Hi."), call] })).toEqual(["look__look"]);
  const events = responses.decodeReply({ id: "r", model: "m", status: "completed", output: [call] });
  expect(events).toContainEqual({
    type: "block-start",
    block: expect.objectContaining({ kind: "tool-call", name: "look" }),
  });
  const { output } = responses.encodeReply(events, decode({ tools: [nested], input: "Hi." }));
  expect(output).toMatchObject([{ type: "function_call", name: "look", namespace: "look" }]);
});

describe("tools", () => {
  const exec = { type: "custom", name: "exec", description: "Runs it.", format: { type: "text" } };
  const spawn = { type: "function", name: "spawn", parameters: { type: "object", properties: {} }, strict: false };
  const namespaces = [
    { type: "namespace", name: "functions", description: "Code.", tools: [exec] },
    { type: "namespace", name: "collaboration", description: "Others.", tools: [spawn, { ...spawn, name: "wait" }] },
  ];
  const codeMode = {
    input: [
      message("user", "Go."),
      { type: "additional_tools", role: "developer", tools: namespaces },
      { type: "custom_tool_call", call_id: "call_1", namespace: "functions", name: "exec", input: "1 + 1" },
      { type: "custom_tool_call_output", call_id: "call_1", output: "2" },
    ],
    parallel_tool_calls: false,
  };

  test("that come in an item of the input are tools like any other", () => {
    const { tools, turns } = decode(codeMode);
    expect(tools.map((tool) => tool.kind !== "foreign" && [tool.kind, tool.name])).toEqual([
      ["freeform", "functions__exec"],
      ["function", "collaboration__spawn"],
      ["function", "collaboration__wait"],
    ]);
    expect(turns[1]?.parts[0]).toMatchObject({
      kind: "tool-call",
      name: "functions__exec",
      input: "1 + 1",
      freeform: true,
    });
  });

  test("go back to their item, their namespaces and its place among the turns", () => {
    const { body, dropped } = encode(codeMode);
    expect(body.input).toEqual(codeMode.input);
    expect(body.tools).toBeUndefined();
    expect(dropped).toEqual([]);
  });

  test("tools of a namespace are called by namespace and name, whoever answered", () => {
    const conversation = decode(codeMode);
    const { conversation: adapted, restore } = adapt(conversation, "messages");
    expect(adapted.tools.map((tool) => tool.kind)).toEqual(["function", "function", "function"]);
    const events: ReplyEvent[] = [
      { type: "start", id: "msg_1", model: "claude" },
      { type: "block-start", block: { kind: "tool-call", id: "toolu_1", name: "functions__exec" } },
      { type: "block-delta", text: '{"input":"2 ' },
      { type: "block-delta", text: '+ 2"}' },
      { type: "block-end" },
      { type: "block-start", block: { kind: "tool-call", id: "toolu_2", name: "collaboration__wait" } },
      { type: "block-end" },
      { type: "finish", reason: "tool-call" },
    ];
    const { output } = responses.encodeReply(run(restore!, events), conversation);
    expect(output).toEqual([
      expect.objectContaining({
        type: "custom_tool_call",
        namespace: "functions",
        name: "exec",
        input: "2 + 2",
        call_id: "toolu_1",
      }),
      expect.objectContaining({ type: "function_call", namespace: "collaboration", name: "wait", arguments: "{}" }),
    ]);
  });

  test("tools of a namespace that an upstream of this dialect calls come back as they were called", () => {
    const item = {
      type: "function_call",
      id: "x",
      call_id: "call_9",
      namespace: "collaboration",
      name: "wait",
      arguments: "{}",
    };
    const events = responses.decodeReply({ id: "r", model: "m", status: "completed", output: [item] });
    expect(events).toContainEqual(
      expect.objectContaining({ block: expect.objectContaining({ name: "collaboration__wait" }) }),
    );
    const { output } = responses.encodeReply(events, decode(codeMode));
    expect(output).toEqual([expect.objectContaining({ namespace: "collaboration", name: "wait", call_id: "call_9" })]);
  });

  test("tools of one name in two places get two names in the hub and their own back", () => {
    const tools = [
      spawn,
      { type: "namespace", name: "a", tools: [{ ...spawn, name: "b" }] },
      { ...spawn, name: "a__b" },
    ];
    const input = [{ type: "additional_tools", role: "developer", tools: [spawn] }, message("user", "Hi.")];
    const conversation = decode({ tools, input });
    const names = conversation.tools.map((tool) => tool.kind !== "foreign" && tool.name);
    expect(names).toEqual(["spawn", "a__b", "a__b_2", "spawn_2"]);
    expect(responses.encodeRequest(conversation, model).body).toMatchObject({ tools, input });
  });

  test("a choice names the tool as the wire knows it", () => {
    const tool_choice = { type: "custom", namespace: "functions", name: "exec" };
    expect(decode({ tools: namespaces, tool_choice }).toolChoice).toEqual({ name: "functions__exec" });
    expect(encode({ tools: namespaces, tool_choice }).body.tool_choice).toEqual(tool_choice);
  });

  test("that search the web go, in namespaces too, when the owner does not want them", () => {
    const web = { type: "web_search" };
    const namespace = { type: "namespace", name: "n", description: "All of n." };
    const tools = [web, { ...namespace, tools: [spawn, web] }];
    const { body, dropped } = responses.encodeRequest(decode({ tools }), model, { webSearch: false });
    expect(body.tools).toEqual([{ ...namespace, tools: [spawn] }]);
    expect(dropped).toEqual(["web_search"]);
    expect(encode({ tools }).body.tools).toEqual(tools);
    const forced = decode({ tools: [web], tool_choice: web });
    const refused = refusalOf(() => responses.encodeRequest(forced, model, { webSearch: false }));
    expect(refused.details.param).toBe("tool_choice");
  });
});

describe("a request written", () => {
  const conversation = (members: Partial<Conversation>): Conversation => ({
    model: "m",
    turns: [{ role: "user", parts: [{ kind: "text", text: "Hi." }] }],
    tools: [],
    stream: true,
    ...members,
  });

  test("what other dialects alone can say is named, not sent", () => {
    const { body, dropped } = responses.encodeRequest(
      conversation({
        stop: ["END"],
        tools: [{ kind: "foreign", dialect: "messages", value: { type: "web_search_20250305", name: "web_search" } }],
        turns: [
          {
            role: "user",
            parts: [
              { kind: "text", text: "Hi.", extras: { anthropic: { citations: {} } } },
              { kind: "foreign", dialect: "messages", value: { type: "search_result" } },
            ],
          },
          { role: "assistant", parts: [{ kind: "thinking", text: "Hm", signature: { dialect: "chat", value: "x" } }] },
        ],
        topK: 5,
        seed: 1,
        extras: { google: { safetySettings: [] }, openai: { n: 1, user: "me" } },
      }),
      model,
    );
    expect(dropped.sort()).toEqual([
      "citations",
      "safetySettings",
      "search_result",
      "seed",
      "stop",
      "thinking",
      "top_k",
      "web_search_20250305",
    ]);
    expect(body).toEqual({
      ...{ model: "some-model", input: [message("user", "Hi.")], store: false, stream: true, user: "me" },
      include: ["reasoning.encrypted_content"],
    });
  });

  test("several answers, and a tool that is not there, are refused", () => {
    expect(
      refusalOf(() => responses.encodeRequest(conversation({ extras: { openai: { n: 2 } } }), model)).details.param,
    ).toBe("n");
    const value = { type: "web_search_20250305", name: "web_search" };
    const forced = conversation({
      tools: [{ kind: "foreign", dialect: "messages", value }],
      toolChoice: { name: "web_search" },
    });
    expect(refusalOf(() => responses.encodeRequest(forced, model)).details.param).toBe("tool_choice");
  });

  test("limits and efforts beyond the model are lowered and named in `dropped`", () => {
    const { body, dropped } = responses.encodeRequest(
      conversation({ maxTokens: 128_000, reasoning: { effort: "xhigh" } }),
      model,
    );
    expect(body).toMatchObject({ max_output_tokens: 32_000, reasoning: { effort: "high" } });
    expect(dropped).toEqual(["max_tokens set to 32000", "effort xhigh set to high"]);
  });

  test("a budget of thinking becomes an effort", () => {
    expect(responses.encodeRequest(conversation({ reasoning: { budget: 31_999 } }), model).body.reasoning).toEqual({
      effort: "high",
    });
    expect(
      responses.encodeRequest(conversation({ reasoning: { adaptive: true } }), model).body.reasoning,
    ).toBeUndefined();
  });

  test("a chat client's grammar loses its inner shell", () => {
    const grammar = { type: "grammar", grammar: { syntax: "lark", definition: "start: /x/" } };
    const { body } = responses.encodeRequest(
      conversation({ tools: [{ kind: "freeform", name: "p", grammar }] }),
      model,
    );
    expect(body.tools).toEqual([
      { type: "custom", name: "p", format: { type: "grammar", syntax: "lark", definition: "start: /x/" } },
    ]);
  });

  test("the status carries a tool's failure in both directions", () => {
    const failed = { ...output, status: "incomplete" };
    expect(decode({ input: [call, failed] }).turns[1]?.parts[0]).toMatchObject({ failed: true });
    expect(encode({ input: [call, failed] }).body.input).toEqual([call, failed]);
  });

  test("results of a freeform call are freeform, though their client did not say so", () => {
    const { body } = responses.encodeRequest(
      conversation({
        turns: [
          { role: "assistant", parts: [{ kind: "tool-call", id: "c", name: "p", input: "x", freeform: true }] },
          { role: "user", parts: [{ kind: "tool-result", id: "c", parts: [{ kind: "text", text: "done" }] }] },
        ],
      }),
      model,
    );
    expect(body.input).toEqual([
      { type: "custom_tool_call", call_id: "c", name: "p", input: "x" },
      { type: "custom_tool_call_output", call_id: "c", output: "done" },
    ]);
  });
});

describe("through the hub or around it, the upstream gets the same request", () => {
  const words = fc.oneof(fc.constantFrom("", "a", "größe\u2028", '{"a":1}', "\ud800"), fc.string());
  const unknown = fc.dictionary(fc.constantFrom("x_a", "x_b", "prompt_cache_breakpoint"), fc.jsonValue(), {
    maxKeys: 2,
  });
  const mixed = (base: fc.Arbitrary<JsonObject>) =>
    fc.tuple(base, unknown).map(([known, others]): JsonObject => ({ ...others, ...known }));
  const shape = (members: Record<string, fc.Arbitrary<unknown>>, requiredKeys: string[]) =>
    mixed(fc.record<JsonObject, string>(members, { requiredKeys }));
  const is = (value: unknown) => fc.constant(value);

  const textPart = shape(
    { type: fc.constantFrom("input_text", "output_text", "text"), text: words, annotations: is([]) },
    ["type", "text"],
  );
  const part = fc.oneof(
    textPart,
    shape({ type: is("refusal"), refusal: words }, ["type", "refusal"]),
    shape(
      {
        type: is("input_image"),
        image_url: fc.constantFrom("data:image/png;base64,AA", "https://a/b"),
        detail: is("low"),
      },
      ["type", "image_url"],
    ),
    shape({ type: is("input_image"), file_id: is("file_1") }, ["type", "file_id"]),
    shape({ type: is("input_file"), filename: is("a.pdf"), file_data: is("data:application/pdf;base64,AA") }, [
      "type",
      "file_data",
    ]),
    shape({ type: is("input_mystery") }, ["type"]),
  );
  const id = fc.constantFrom("a", "b", "msg_0190");
  const customId = fc.constantFrom("c", "d");
  const item = fc.oneof(
    shape(
      {
        type: is("message"),
        role: fc.constantFrom("user", "assistant", "system", "developer"),
        content: fc.oneof(words, fc.array(part, { minLength: 1, maxLength: 3 })),
        ...{ id, status: is("completed"), phase: fc.constantFrom("commentary", null) },
      },
      ["role", "content"],
    ),
    shape(
      {
        type: is("function_call"),
        call_id: id,
        name: is("f"),
        arguments: words,
        id,
        namespace: is("n"),
        status: is("completed"),
      },
      ["type", "call_id", "name", "arguments"],
    ),
    shape({ type: is("custom_tool_call"), call_id: customId, name: is("p"), input: words, id }, [
      "type",
      "call_id",
      "name",
      "input",
    ]),
    ...(["function_call_output", "custom_tool_call_output"] as const).map((type) =>
      shape(
        {
          ...{ type: is(type), call_id: type === "function_call_output" ? id : customId, id },
          status: fc.constantFrom("completed", "incomplete"),
          output: fc.oneof(words, fc.array(part, { maxLength: 2 })),
        },
        ["type", "call_id", "output"],
      ),
    ),
    shape(
      {
        ...{ type: is("reasoning"), id, encrypted_content: fc.constantFrom("cHJvb2Y=", null), content: is(null) },
        summary: fc.array(fc.record({ type: is("summary_text"), text: words }), { maxLength: 2 }),
      },
      ["type", "summary"],
    ),
    shape(
      {
        type: fc.constantFrom("compaction", "web_search_call", "item_reference", "local_shell_call_output"),
        id,
        call_id: id,
      },
      ["type"],
    ),
  );
  const tool = fc.oneof(
    shape(
      {
        ...{ type: is("function"), name: fc.constantFrom("f", "g"), description: fc.option(words) },
        parameters: fc.constantFrom({ type: "object", properties: { a: { $ref: "#" } } }, { type: "object" }, null),
        strict: fc.option(fc.boolean()),
      },
      ["type", "name"],
    ),
    shape({ type: is("custom"), name: is("p"), format: is({ type: "grammar", syntax: "lark", definition: "x" }) }, [
      "type",
      "name",
    ]),
    shape({ type: fc.constantFrom("web_search", "image_generation", "tool_search", "mcp") }, ["type"]),
  );
  const namespace = shape(
    { type: is("namespace"), name: fc.constantFrom("n", "image_gen"), tools: fc.array(tool, { maxLength: 2 }) },
    ["type", "name", "tools"],
  );
  const tools = fc.array(fc.oneof(tool, namespace), { maxLength: 4 });
  const body = shape(
    {
      model: is("some-model"),
      input: fc.oneof(
        words,
        fc.array(
          fc.oneof(
            { weight: 6, arbitrary: item },
            shape({ type: is("additional_tools"), role: is("developer"), tools }, ["type", "tools"]),
          ),
          { maxLength: 8 },
        ),
      ),
      instructions: fc.option(words),
      tools: fc.option(tools),
      tool_choice: fc.constantFrom(
        "auto",
        "none",
        null,
        { type: "function", name: "f" },
        { type: "mcp", server_label: "x" },
      ),
      ...{
        parallel_tool_calls: fc.option(fc.boolean()),
        max_output_tokens: fc.option(fc.integer({ min: 16, max: 1e6 })),
      },
      ...{ temperature: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })), top_p: fc.option(is(0.5)) },
      reasoning: fc.constantFrom(
        null,
        {},
        { effort: "low" },
        { effort: "none", summary: "auto" },
        { context: "all_turns" },
        { effort: null },
      ),
      text: fc.constantFrom(
        ...[null, {}, { verbosity: "low" }, { format: { type: "text" } }, { format: { type: "json_object" } }],
        {
          verbosity: "high",
          format: { type: "json_schema", name: "n", schema: { type: "object" }, strict: null, x: 1 },
          y: 2,
        },
        { format: { type: "mystery" } },
      ),
      ...{ stream: fc.option(fc.boolean()), store: fc.option(fc.boolean()), include: fc.option(is(["x"])) },
      ...{ service_tier: is("auto"), user: words, metadata: is({ a: "b" }), truncation: is("auto") },
      ...{
        client_metadata: is({ a: 1 }),
        prompt_cache_key: words,
        previous_response_id: is(null),
        stream_options: is({ include_obfuscation: false }),
      },
    },
    ["model", "input"],
  );

  test("a request through the hub or around it is the same at the upstream, whatever a client sends", () => {
    fc.assert(
      fc.property(body, (generated) => {
        const { body } = responses.encodeRequest(responses.decodeRequest(generated), boundless);
        expect(meaning(body)).toEqual(meaning(passed(generated, boundless)));
      }),
      { numRuns: triesOf(3000) },
    );
  });

  /** The request without what means the same either way: see each line. */
  function meaning(body: JsonObject): JsonObject {
    const { input, tools, text, reasoning, ...others } = body;
    const items = typeof input === "string" ? [message("user", input)] : (input as JsonObject[]);
    return spoken({
      // Said as null or not at all.
      ...spoken({ ...others, parallel_tool_calls: others.parallel_tool_calls ?? undefined }),
      previous_response_id: others.previous_response_id,
      stream: others.stream ?? false,
      text: isObject(text) ? spoken({ ...text, format: isObject(text.format) ? spoken(text.format) : undefined }) : {},
      reasoning: isObject(reasoning) ? spoken(reasoning) : {},
      tools: Array.isArray(tools) ? tools.map(meaningOfTool) : [],
      input: items.flatMap(meaningOfItem),
    });
  }

  function meaningOfItem(item: JsonObject): JsonObject[] {
    if (item.type === "additional_tools") return [{ ...item, tools: (item.tools as JsonObject[]).map(meaningOfTool) }];
    if (item.type === "message" || (item.type === undefined && "role" in item)) {
      // A string is one text; the type of a message may be left out.
      const content =
        typeof item.content === "string" ? message(String(item.role), item.content).content : item.content;
      return [{ ...item, type: "message", content: (content as JsonObject[]).map(meaningOfPart) }];
    }
    if (Array.isArray(item.output)) {
      // One plain text is a string, nothing is an empty one.
      const parts: JsonObject[] = item.output.map(meaningOfPart);
      const [first = { type: "input_text", text: "" }] = parts;
      const isPlain = parts.length < 2 && first.type === "input_text" && Object.keys(first).length === 2;
      return [{ ...item, output: isPlain ? first.text : parts }];
    }
    return [item];
  }

  /** Empty annotations say nothing. */
  function meaningOfPart({ annotations, ...part }: JsonObject): JsonObject {
    return part;
  }

  /** A schema that is not there, or names no properties, allows any. */
  function meaningOfTool(tool: JsonObject): JsonObject {
    if (tool.type === "namespace") return { ...tool, tools: (tool.tools as JsonObject[]).map(meaningOfTool) };
    if (tool.type !== "function") return tool;
    return spoken({ ...tool, parameters: { properties: {}, ...(tool.parameters ?? { type: "object" }) } });
  }

  function spoken(object: JsonObject): JsonObject {
    return Object.fromEntries(Object.entries(object).filter(([key, value]) => value != null || key.startsWith("x_")));
  }
});

describe("items another account made", () => {
  test("are taken out, with all ids, and nothing else: a compaction is the conversation", () => {
    const body = request({
      input: [
        { type: "compaction", id: "cmp_1", encrypted_content: "x" },
        { ...message("assistant", "A"), id: "msg_1", phase: "commentary" },
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "x" },
        { ...call, id: "fc_1" },
        output,
        { type: "web_search_call", id: "ws_1", status: "completed" },
      ],
    });
    expect(repairForeignItems(body, () => true)).toEqual({
      ...body,
      input: [
        { type: "compaction", encrypted_content: "x" },
        { ...message("assistant", "A"), phase: "commentary" },
        call,
        output,
        { type: "web_search_call", status: "completed" },
      ],
    });
    expect(repairForeignItems(request({}), () => true)).toEqual(request({}));
  });
});

const framesOf = (bytes: Uint8Array) => run(readSse, [bytes]);
const sse = (...events: JsonObject[]): SseFrame[] => events.map((event) => jsonFrame(event, String(event.type)));
const created: JsonObject = {
  type: "response.created",
  response: { id: "r1", model: asked.model, status: "in_progress", output: [] },
  sequence_number: 0,
};
const completed: JsonObject = {
  type: "response.completed",
  response: { id: "r1", model: asked.model, status: "completed", output: [] },
  sequence_number: 99,
};
const decodeEvents = (...events: JsonObject[]) => run(reads(responses), sse(...events));
const read = (...events: JsonObject[]) => meaningOf(decodeEvents(...events));
const added = (output_index: number, item: JsonObject) => ({ type: "response.output_item.added", output_index, item });
const done = (output_index: number, item: JsonObject) => ({ type: "response.output_item.done", output_index, item });
const textDelta = (output_index: number, content_index: number, delta: string) => ({
  type: "response.output_text.delta",
  ...{ output_index, content_index, delta },
});
const argumentsDelta = (output_index: number, delta: string) => ({
  type: "response.function_call_arguments.delta",
  output_index,
  delta,
});
const callItem = (call_id: string, text: string) => ({ type: "function_call", call_id, name: "f", arguments: text });

describe("a stream read", () => {
  test("arguments that only the last event has are emitted whole", () => {
    const { blocks } = read(created, added(0, callItem("c", "")), done(0, callItem("c", '{"a":1}')), completed);
    expect(blocks).toEqual([{ kind: "tool-call", id: "c", name: "f", text: '{"a":1}' }]);
  });

  test("words are read as they are meant, whatever they look like", () => {
    const item = { type: "message", id: "m", content: [] };
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary" }),
          fc.constantFrom('"', "\\", '\\"', '\n","delta":"x', '"output_index":3,'),
        ),
        (words) => {
          const blocks = words === "" ? [] : [{ kind: "text", text: words }];
          expect(read(created, added(0, item), textDelta(0, 0, words), done(0, item), completed).blocks).toEqual(
            blocks,
          );
        },
      ),
    );
  });

  test("a call whose end never came is a call all the same", () => {
    const { blocks, end } = read(created, added(0, callItem("c", "")), argumentsDelta(0, "{}"), completed);
    expect(blocks).toMatchObject([{ id: "c", text: "{}" }]);
    expect(end).toEqual({ type: "finish", reason: "tool-call" });
  });

  test("a message's phase is emitted once for all its parts", () => {
    const content = [
      { type: "output_text", text: "A", annotations: [], logprobs: [] },
      { type: "output_text", text: "B", annotations: [], logprobs: [] },
    ];
    const item = { type: "message", id: "m", role: "assistant", status: "completed", phase: "final_answer", content };
    const events = decodeEvents(created, done(0, item), completed);
    const { output } = responses.encodeReply(events, decode({}));
    expect(output).toEqual([{ ...item, id: expect.any(String) }]);
  });

  test("an item that was never added, and one that only the terminal event has, are emitted", () => {
    const whole = {
      ...completed,
      response: { ...(completed.response as JsonObject), output: [callItem("a", "{}"), callItem("b", "{}")] },
    };
    expect(read(created, done(0, callItem("a", "{}")), whole).blocks.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(read(created, whole)).toMatchObject({ blocks: [{ id: "a" }, { id: "b" }], end: { reason: "tool-call" } });
  });

  test("text of an item that was never added is no empty reply", () => {
    const said = { type: "message", id: "m", content: [{ type: "output_text", text: "Hi there." }] };
    const blocks = [{ kind: "text", text: "Hi there." }];
    expect(read(created, textDelta(0, 0, "Hi "), textDelta(0, 0, "there."), completed).blocks).toEqual(blocks);
    expect(read(created, textDelta(0, 0, "Hi there."), done(0, said), completed).blocks).toEqual(blocks);
  });

  test("items whose events are shuffled come one after the other, none mixed with another", () => {
    const { blocks } = read(
      created,
      ...[
        added(0, callItem("a", "")),
        added(1, callItem("b", "")),
        argumentsDelta(1, '{"b'),
        argumentsDelta(0, '{"a":'),
      ],
      ...[
        argumentsDelta(1, '":2}'),
        done(1, callItem("b", '{"b":2}')),
        argumentsDelta(0, "1}"),
        done(0, callItem("a", '{"a":1}')),
      ],
      completed,
    );
    expect(blocks.map(({ id, text }) => [id, text])).toEqual([
      ["a", '{"a":1}'],
      ["b", '{"b":2}'],
    ]);
  });

  test("several parts of a summary stand apart by a blank line", () => {
    const delta = (summary_index: number, text: string) => ({
      type: "response.reasoning_summary_text.delta",
      ...{ output_index: 0, summary_index, delta: text },
    });
    const item = { type: "reasoning", id: "rs_late", summary: [], encrypted_content: "cHJvb2Y=" };
    const events = decodeEvents(
      created,
      added(0, { ...item, id: "rs_first" }),
      delta(0, "One."),
      delta(1, "Two"),
      delta(1, "."),
      done(0, item),
      completed,
    );
    expect(meaningOf(events).blocks).toEqual([{ kind: "thinking", text: "One.\n\nTwo.", signature: "cHJvb2Y=" }]);
    expect(events).toContainEqual(
      expect.objectContaining({ signature: { dialect: "responses", value: "cHJvb2Y=", id: "rs_first" } }),
    );
  });

  test("thinking that shows nothing and proves nothing is no block", () => {
    expect(
      read(
        created,
        added(0, { type: "reasoning", id: "a", summary: [] }),
        done(0, { type: "reasoning", id: "a", summary: [] }),
        completed,
      ).blocks,
    ).toEqual([]);
  });

  test("a text of several parts is several blocks, and to go back to one that ended is an error", () => {
    const item = (texts: string[]) => ({
      type: "message",
      id: "m",
      phase: "commentary",
      content: texts.map((text) => ({ type: "output_text", text })),
    });
    const start = [created, added(0, item([])), textDelta(0, 0, "One"), textDelta(0, 1, "Tw")];
    expect(
      read(...start, textDelta(0, 1, "o"), done(0, item(["One", "Two", "Three"])), completed).blocks.map(
        ({ text }) => text,
      ),
    ).toEqual(["One", "Two", "Three"]);
    expect(read(...start, textDelta(0, 0, "!"), completed).end).toEqual({ type: "error" });
    expect(decodeEvents(...start)).toContainEqual({
      type: "block-start",
      block: { kind: "text", extras: { openai: { phase: "commentary" } } },
    });
  });

  test("citations of a text are kept with it", () => {
    const annotations = [{ type: "url_citation", url: "https://a", title: "A", start_index: 0, end_index: 1 }];
    const part = { type: "output_text", text: "A", annotations };
    const item = { type: "message", id: "m", content: [part] };
    const partDone = { type: "response.content_part.done", output_index: 0, content_index: 0, part };
    const end = { type: "block-end", extras: { openai: { annotations } } } as ReplyEvent;
    expect(
      decodeEvents(created, added(0, item), textDelta(0, 0, "A"), partDone, done(0, item), completed),
    ).toContainEqual(end);
    expect(decodeEvents(created, added(0, item), textDelta(0, 0, "A"), done(0, item), completed)).toContainEqual(end);
    const events = decodeEvents(created, done(0, item), completed);
    expect(responses.encodeReply(events, decode({})).output).toMatchObject([{ content: [{ text: "A", annotations }] }]);
  });

  test("what only this dialect has comes through whole", () => {
    const item = { type: "web_search_call", id: "ws", status: "completed", action: { type: "search", query: "x" } };
    const events = decodeEvents(created, added(0, { type: "web_search_call", id: "ws" }), done(0, item), completed);
    expect(events).toContainEqual({
      type: "block-start",
      block: { kind: "foreign", dialect: "responses", value: item, ran: "web-search" },
    });
    expect(responses.encodeReply(events, decode({})).output).toEqual([item]);
  });

  test.each([
    ["an error event", { type: "error", code: "rate_limited", message: "Too many." }, "rate_limited", "Too many."],
    [
      "Copilot's nested error event",
      { type: "error", error: { code: "quota_exceeded", message: "None left." } },
      "quota_exceeded",
      "None left.",
    ],
    ["a bare error", { error: { code: "x", message: "Gone." } }, "x", "Gone."],
    [
      "a failed response",
      { type: "response.failed", response: { error: { code: "server_error", message: "Oops." } } },
      "server_error",
      "Oops.",
    ],
    [
      "a failed response without a word",
      { type: "response.failed", response: {} },
      "upstream_error",
      "The upstream ended its reply with an error that has no message.",
    ],
    [
      "a cancelled response",
      { type: "response.cancelled", response: {} },
      "upstream_error",
      "The upstream ended its reply with an error that has no message.",
    ],
  ])("%s ends it with the upstream's words", (_, event, code, message) => {
    expect(decodeEvents(created, textDelta(0, 0, "x"), event, completed).at(-1)).toMatchObject({
      type: "error",
      code,
      message,
    });
    expect(decodeEvents(event).at(-1)).toMatchObject({ type: "error", code, message });
  });

  test("tokens of a failed response are counted all the same", () => {
    const response = { error: { message: "x" }, usage: { input_tokens: 5, output_tokens: 1 } };
    expect(decodeEvents(created, { type: "response.failed", response })).toContainEqual({
      type: "usage",
      usage: { input: 5, output: 1 },
    });
  });

  test("an unknown reason for an incomplete reply is not a success", () => {
    const incomplete = (reason: string) => ({
      type: "response.incomplete",
      response: { status: "incomplete", output: [], incomplete_details: { reason } },
    });
    expect(decodeEvents(created, incomplete("content_filter")).at(-1)).toEqual({
      type: "finish",
      reason: "refusal",
      raw: "content_filter",
    });
    expect(decodeEvents(created, incomplete("weariness")).at(-1)).toEqual({
      type: "finish",
      reason: "length",
      raw: "weariness",
    });
  });

  test("what is no JSON, or no object, ends it", () => {
    for (const data of ["{oops}", "1", "[]"])
      expect(run(reads(responses), [...sse(created), { data }]).at(-1)).toMatchObject({
        type: "error",
        code: "upstream_bad_event",
      });
  });

  test("any order of any events keeps the grammar", () => {
    const index = fc.integer({ min: -1, max: 2 });
    const item = fc.oneof(
      fc.constantFrom(
        callItem("c", '{"a":1}'),
        { type: "reasoning", id: "r", summary: [], encrypted_content: "x" },
        { type: "compaction", id: "x" },
      ),
      fc.constant({
        type: "message",
        id: "m",
        content: [{ type: "output_text", text: "A" }, { type: "refusal", refusal: "B" }, null],
      }),
    );
    const event = fc.oneof(
      fc.constantFrom<JsonObject[]>(created, completed, { type: "error" }, { type: "ping" }),
      fc.tuple(index, item).map(([at, value]): JsonObject => added(at, value)),
      fc.tuple(index, item).map(([at, value]): JsonObject => done(at, value)),
      fc.tuple(index, index).map(([at, part]): JsonObject => textDelta(at, part, "x")),
      index.map((at): JsonObject => argumentsDelta(at, "x")),
      fc.tuple(index, index).map(
        ([at, part]): JsonObject => ({
          type: "response.content_part.done",
          output_index: at,
          content_index: part,
          part: {},
        }),
      ),
      fc.tuple(index, index).map(
        ([at, part]): JsonObject => ({
          type: "response.reasoning_summary_text.delta",
          output_index: at,
          summary_index: part,
          delta: "x",
        }),
      ),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), (events) => void meaningOf(decodeEvents(...events))),
      { numRuns: triesOf(2000) },
    );
  });
});

describe("a full reply read", () => {
  test.each([
    ["not an object", 5, "upstream_bad_reply"],
    ["of another kind", { choices: [] }, "upstream_bad_reply"],
    ["an error", { error: { code: "x", message: "y" } }, "x"],
    [
      "a failure",
      { id: "r", status: "failed", output: [], error: { code: "server_error", message: "y" } },
      "server_error",
    ],
    ["unfinished", { id: "r", status: "in_progress", output: [], error: null }, "upstream_error"],
  ])("that is %s ends in an error", (_, body, code) => {
    expect(responses.decodeReply(body).at(-1)).toMatchObject({ type: "error", code });
  });

  test("has no id that the upstream has sealed: other dialects would repeat it with every piece", () => {
    const startOf = (id: string) =>
      responses.decodeReply({ id, status: "completed", output: [], error: null }).find(({ type }) => type === "start");
    expect(startOf("resp_1")).toMatchObject({ id: "resp_1" });
    expect(startOf("A".repeat(416))).toMatchObject({ id: "" });
  });

  test("reports its charge and its cached tokens", () => {
    const usage = {
      input_tokens: 9,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
      output_tokens: 3,
      output_tokens_details: { reasoning_tokens: 1 },
    };
    const events = responses.decodeReply({
      id: "r",
      status: "completed",
      output: [],
      usage,
      copilot_usage: { total_nano_aiu: 7 },
    });
    expect(events).toContainEqual({
      type: "usage",
      usage: { input: 9, cachedInput: 4, cacheWrite: 2, output: 3, reasoning: 1, nanoCredits: 7 },
    });
  });
});

const text = (...pieces: string[]): ReplyEvent[] => [
  { type: "block-start", block: { kind: "text" } },
  ...pieces.map((piece): ReplyEvent => ({ type: "block-delta", text: piece })),
  { type: "block-end" },
];
const start: ReplyEvent = { type: "start", id: "chatcmpl-1", model: "claude-sonnet-4.5-dated" };
const finish = (reason: "stop" | "length" | "refusal" | "tool-call"): ReplyEvent => ({ type: "finish", reason });

function streamed(events: ReplyEvent[], members: JsonObject = {}): JsonObject[] {
  const asked = decode({ model: "claude-sonnet-4.5", ...members });
  return written(responses.encodeStream(asked), events).map((frame) => jsonOf(frame) as JsonObject);
}

/** The response the last event shows. */
function responseOf(events: JsonObject[]): JsonObject {
  const response = events.at(-1)?.response;
  if (!isObject(response)) throw new Error("the last event shows no response");
  return response;
}

const outputOf = (events: JsonObject[]) => responseOf(events).output as JsonObject[];

describe("a stream written", () => {
  test("a stream written sends every event, numbered from 0, with the client's name of the model", () => {
    const events = streamed([
      start,
      ...text("Hel", "lo"),
      { type: "usage", usage: { input: 3, output: 2 } },
      finish("stop"),
    ]);
    expect(events.map(({ type }) => type)).toEqual([
      ...["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"],
      ...["response.output_text.delta", "response.output_text.delta", "response.output_text.done"],
      ...["response.content_part.done", "response.output_item.done", "response.completed"],
    ]);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    const response = responseOf(events);
    expect(response).toMatchObject({
      model: "claude-sonnet-4.5",
      object: "response",
      status: "completed",
      store: false,
    });
    expect(response.usage).toEqual({
      ...{ input_tokens: 3, output_tokens: 2, total_tokens: 5 },
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    });
  });

  test("invents ids of the dialect's own form, none longer than 64", () => {
    const events = streamed([
      start,
      { type: "block-start", block: { kind: "thinking" } },
      { type: "block-end" },
      ...text("x"),
      { type: "block-start", block: { kind: "tool-call", id: "toolu_1", name: "f" } },
      { type: "block-end" },
      { type: "block-start", block: { kind: "tool-call", id: "toolu_2", name: "p", freeform: true } },
      { type: "block-end" },
      finish("tool-call"),
    ]);
    const output = outputOf(events);
    const ids = [responseOf(events).id, ...output.map((item) => item.id)].map(String);
    expect(ids.map((each) => each.replace(/_[0-9a-f]{32}$/, ""))).toEqual(["resp", "rs", "msg", "fc", "ctc"]);
    expect(output[0]?.encrypted_content).toBeNull();
  });

  test("a proof and its id stay the pair they are; another maker's proof is packed", () => {
    const thinking = (dialect: "responses" | "messages", extra?: JsonObject): ReplyEvent[] => [
      start,
      { type: "block-start", block: { kind: "thinking", ...(extra ? { extras: { openai: extra } } : {}) } },
      { type: "block-end", signature: { dialect, value: "cHJvb2Y=", id: "opaque" } },
      finish("stop"),
    ];
    const itemOf = (events: JsonObject[]) => outputOf(events)[0];
    expect(itemOf(streamed(thinking("responses", { id: "opaque" })))).toMatchObject({
      id: "opaque",
      encrypted_content: "cHJvb2Y=",
    });
    const packed = itemOf(streamed(thinking("messages")))?.encrypted_content;
    expect(packed).toBe(`dragoman.messages.${Buffer.from("opaque").toString("base64url")}.cHJvb2Y=`);
  });

  test("a reply cut by its length says so, and that its last call is not whole", () => {
    const events = streamed([
      start,
      ...text("x"),
      { type: "block-start", block: { kind: "tool-call", id: "c", name: "f" } },
      { type: "block-delta", text: '{"a' },
      { type: "block-end" },
      finish("length"),
    ]);
    expect(events.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: {
        incomplete_details: { reason: "max_output_tokens" },
        output: [{ status: "completed" }, { status: "incomplete", arguments: '{"a' }],
      },
    });
  });

  test("a refusal in words is complete, one by a filter is not", () => {
    const refusal: ReplyEvent = { type: "block-start", block: { kind: "text", refusal: true } };
    expect(streamed([start, refusal, { type: "block-end" }, finish("refusal")]).at(-1)?.type).toBe(
      "response.completed",
    );
    expect(streamed([start, finish("refusal")]).at(-1)).toMatchObject({
      response: { incomplete_details: { reason: "content_filter" } },
    });
  });

  test("texts that follow each other are parts of one message", () => {
    const events = streamed([start, ...text("A"), ...text("B"), finish("stop")]);
    expect(outputOf(events)).toMatchObject([{ content: [{ text: "A" }, { text: "B" }] }]);
  });

  test("a stream's events repeat what the request asked for", () => {
    const members = {
      instructions: "Be brief.",
      tools: [{ type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: false }],
      tool_choice: { type: "function", name: "f" },
      text: { verbosity: "low" },
      ...{
        temperature: 0.3,
        top_p: 0.9,
        max_output_tokens: 50,
        reasoning: { effort: "low" },
        metadata: { a: "b" },
        truncation: "auto",
      },
    };
    expect(streamed([start, finish("stop")], members).at(-1)?.response).toMatchObject({
      ...members,
      text: { format: { type: "text" }, verbosity: "low" },
      reasoning: { effort: "low", summary: null },
      ...{ parallel_tool_calls: true, previous_response_id: null, store: false },
    });
  });

  test("a failure before the first output is an error event, later the response's own end, and the end is the end", () => {
    const error: ReplyEvent = { type: "error", ...cutReply };
    expect(streamed([error])).toEqual([{ type: "error", sequence_number: 0, ...told, param: null } as JsonObject]);
    const events = streamed([start, ...text("x"), error, ...text("y"), finish("stop")]);
    expect(events.at(-1)).toMatchObject({
      type: "response.failed",
      response: { status: "failed", error: told, id: responseOf(events.slice(0, 1)).id },
    });
    expect(events.at(-2)?.type).toBe("response.content_part.done");
  });

  test("a beat is a comment before the response began, then a repetition, and nothing after its end", () => {
    const frames: SseFrame[] = [];
    const client = responses.encodeStream(decode({}))(collectInto(frames));
    client.keepAlive();
    client.push(start);
    client.keepAlive();
    client.push(finish("stop"));
    client.keepAlive();
    client.end();
    expect(frames.map(({ event, data }) => event ?? data ?? "comment")).toEqual([
      ...["comment", "response.created", "response.in_progress", "response.in_progress", "response.completed"],
    ]);
    checkResponsesStream(overWire(frames));
  });
});

describe("a stream passed through", () => {
  const fixup = (frames: SseFrame[], fixups = new Set<string>()) =>
    written(
      passes(responses, asked, (name) => fixups.add(name)),
      frames,
    );

  test.each(withFile("stream.txt"))("%s", async (folder) => {
    const fixups = new Set<string>();
    const out = fixup(framesOf(bytesAt(folder, "stream.txt")), fixups);
    expect(new TextDecoder().decode(wire(out))).toBe(textAt(folder, "mended.txt"));
    expect([...fixups]).toEqual([folder.replace("responses-", "")]);
    checkResponsesStream(overWire(out));
    await sdkReads(wire(out));
  });

  test.each(["responses-item-ids", "responses-response-id", "responses-foreign-event"])(
    "%s breaks the SDK unmended",
    async (folder) => {
      await expect(sdkReads(bytesAt(folder, "stream.txt"))).rejects.toThrow();
    },
  );

  test("nothing follows the terminal event", () => {
    expect(fixup([...sse(created, completed), { data: "[DONE]" }, ...sse(created)]).map(({ event }) => event)).toEqual([
      "response.created",
      "response.completed",
    ]);
  });

  test("one that breaks off fails in its own words, with what was done", () => {
    const item = { id: "a", ...callItem("c", "{}") };
    expect(jsonOf(fixup(sse(created, added(0, item), done(0, item))).at(-1) ?? {})).toMatchObject({
      type: "response.failed",
      response: { id: "r1", status: "failed", error: told, output: [item] },
    });
    expect(jsonOf(fixup([]).at(-1) ?? {})).toMatchObject({ type: "error", ...told });
  });

  test.each(["{oops}", '{"a":', "<html>", '{"type":"response.completed",}'])(
    "the event %s, which is no JSON, is not forwarded in a stream that is passed through",
    (data) => {
      const out = fixup([...sse(created), { data }, ...sse(completed)]);
      expect(out.map(({ event }) => event)).toEqual(["response.created", "response.failed"]);
      expect(jsonOf(out[1] ?? {})).toMatchObject({ response: { error: { code: "upstream_bad_event" } } });
    },
  );

  test("an event whose name is another one gets the name of its type", () => {
    const fixups = new Set<string>();
    const [first, last] = sse(created, completed);
    const out = fixup([first!, { ...last!, event: "response.complet" }], fixups);
    expect(out.map(({ event }) => event)).toEqual(["response.created", "response.completed"]);
    expect([...fixups]).toEqual(["event-name"]);
  });

  test("an error before the response began arrives as it is", () => {
    const frames = sse({ type: "error", code: "x", message: "y", param: null, sequence_number: 0 });
    expect(fixup(frames)).toEqual(frames);
  });

  test("beats are numbered in line, and so is what follows them", () => {
    const frames = framesOf(bytesAt("responses-item-ids", "stream.txt"));
    const fixups = new Set<string>();
    const out = written(
      passes(responses, asked, (name) => fixups.add(name)),
      frames,
      (client) => client.keepAlive(),
    );
    checkResponsesStream(overWire(out));
    expect([...fixups].sort()).toEqual(["item-ids", "sequence-number"]);
    expect(out.filter(({ event }) => event === "response.in_progress")).toHaveLength(frames.length);
  });

  test("words that look like members of an event stay words", () => {
    const trap = '"item_id":"zzz","output_index":7,"sequence_number":1,"model":"x"';
    const item = { type: "message", id: "first", role: "assistant", content: [] };
    const delta = {
      type: "response.output_text.delta",
      delta: trap,
      item_id: "second",
      output_index: 0,
      content_index: 0,
      sequence_number: 5,
    };
    const out = fixup(sse(created, added(0, item), delta));
    expect(jsonOf(out[2] ?? {})).toEqual({ ...delta, item_id: "first" });
  });

  test("events with blanks in their JSON, or without an event line, are fixed all the same", () => {
    const item = { type: "message", id: "first", role: "assistant", content: [] };
    const delta = {
      type: "response.output_text.delta",
      item_id: "second",
      output_index: 0,
      content_index: 0,
      delta: "x",
    };
    const spaced = [created, added(0, item), delta].map((event) => ({
      data: JSON.stringify(event, null, 1).replaceAll("\n", " "),
    }));
    expect(jsonOf(fixup(spaced)[2] ?? {})).toMatchObject({ item_id: "first" });
    expect(jsonOf(fixup(sse(created, added(0, item), delta).map(({ data }) => ({ data })))[2] ?? {})).toMatchObject({
      item_id: "first",
    });
  });
});

describe("the OpenAI SDK's helper, the strictest reader there is", () => {
  const scenarios = readdirSync(fixtures).filter((name) => hasFixture(name, "responses.stream.txt"));

  test.each(scenarios)("reads %s, written and passed through, beats and all", async (scenario) => {
    const stream = framesOf(bytesAt(scenario, "responses.stream.txt"));
    const events = run(reads(responses), stream);
    const conversation = responses.decodeRequest(jsonAt(scenario, "responses.request.json"));
    const out = written(responses.encodeStream(conversation), events, (client) => client.keepAlive());
    const fixed = written(
      passes(responses, asked, () => {}),
      stream,
      (client) => client.keepAlive(),
    );
    expectSameReply(responses.decodeReply(await sdkReads(wire(out))), events);
    expectSameReply(responses.decodeReply(await sdkReads(wire(fixed))), events);
  });
});

test("an error answer has OpenAI's shape", () => {
  const error = new ProxyError("rate_limit", "Slow down.", { code: "rate_limited" });
  expect(responses.encodeError(error, "req_1")).toEqual({
    error: { message: "Slow down.", type: "rate_limit_error", param: null, code: "rate_limited" },
  });
});

test("a full reply passed through keeps all but Copilot's members and the model's date", () => {
  const body = { id: "r", model: "gpt-5.1-2025-11-13", output: [], copilot_usage: { total_nano_aiu: 1 } };
  const fixups: string[] = [];
  const fixed = passesFull(responses, body, { ...asked, model: "gpt-5.1" }, (name) => fixups.push(name));
  expect(fixed).toEqual({ id: "r", model: "gpt-5.1", output: [] });
  expect(fixups).toEqual(["copilot-fields", "model-name"]);
  expect(body.model).toBe("gpt-5.1-2025-11-13");
});

async function sdkReads(bytes: Uint8Array): Promise<unknown> {
  const fetch = async () => eventStream(bytes);
  const client = new OpenAI({ apiKey: "k", baseURL: "http://localhost/v1", maxRetries: 0, fetch });
  return client.responses.stream({ model: "m", input: "x" }).finalResponse();
}
