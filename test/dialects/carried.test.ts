/** Rows: what one dialect has a block for is told to a model of every other, or said to be left out. */
import { describe, expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import type { Dialect, JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { ProxyError } from "../../src/lib/errors";
import { adapt } from "../support/adapt";
import { ableModel } from "../support/facts";
import { written } from "../support/streams";

const models: Record<Dialect, ModelFacts> = {
  chat: ableModel("gpt-4.1", "OpenAI"),
  responses: ableModel("gpt-5.3-codex", "OpenAI"),
  messages: ableModel("claude-sonnet-4.6", "Anthropic"),
};

function translated(client: Dialect, body: JsonObject, upstream: Dialect, model = models[upstream]) {
  const adapted = adapt(codecs[client].decodeRequest({ model: "m", ...body }), upstream);
  const encoded = codecs[upstream].encodeRequest(adapted.conversation, model);
  return { body: encoded.body, dropped: [...adapted.dropped, ...encoded.dropped] };
}

const fromMessages = (...content: unknown[]) => ({ max_tokens: 99, messages: [{ role: "user", content }] });
const others = ["chat", "responses"] as const;

describe.each(others)("a Messages client's blocks for %s", (upstream) => {
  const words = (...content: unknown[]) => {
    const { body, dropped } = translated("messages", fromMessages(...content), upstream);
    return { sent: JSON.stringify(body.messages ?? body.input), dropped };
  };

  test("documents of text and of blocks keep their title, context, words and pictures", () => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBO" } };
    const { sent, dropped } = words(
      {
        type: "document",
        title: "Plan",
        context: "Old.",
        source: { type: "text", media_type: "text/plain", data: "One." },
      },
      { type: "document", source: { type: "content", content: [{ type: "text", text: "Two." }, image] } },
      { type: "document", source: { type: "content", content: "Three." } },
    );
    for (const piece of ["Plan", "Old.", "One.", "Two.", "iVBO", "Three."]) expect(sent).toContain(piece);
    expect(dropped).toEqual([]);
  });

  test("search results and references to tools, in a result too", () => {
    const found = {
      type: "search_result",
      title: "T",
      source: "https://e.org",
      content: [{ type: "text", text: "Found." }],
    };
    const call = { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "f", input: {} }] };
    const reference = { type: "tool_reference", tool_name: "look" };
    const result = { type: "tool_result", tool_use_id: "t1", content: [found, reference] };
    const messages = [{ role: "user", content: [found] }, call, { role: "user", content: [result] }];
    const { body, dropped } = translated("messages", { max_tokens: 99, messages }, upstream);
    const sent = JSON.stringify(body.messages ?? body.input);
    expect(sent.split("Found.")).toHaveLength(3);
    expect(sent).toContain("https://e.org");
    expect(sent).toContain("`look`");
    expect(dropped).toEqual([]);
  });

  test("an unsupported part is replaced by a note and named in `dropped`", () => {
    const { sent, dropped } = words({ type: "text", text: "Hi" }, { type: "container_upload", file_id: "file_1" });
    expect(sent).toContain("container_upload");
    expect(sent).not.toContain("file_1");
    expect(dropped).toEqual(["container_upload"]);
  });

  test("a document by its address is carried, and left out by name only for chat", () => {
    const { sent, dropped } = words({
      type: "document",
      title: "R",
      source: { type: "url", url: "https://e.org/r.pdf" },
    });
    expect(sent).toContain("https://e.org/r.pdf");
    if (upstream === "responses") expect(sent).toContain('"type":"input_file","filename":"R","file_url"');
    expect(dropped).toEqual(upstream === "chat" ? ["file by its address"] : []);
  });
});

test("a file by its address reaches Claude from a client of responses", () => {
  const content = [{ type: "input_file", file_id: null, file_url: "https://e.org/r.pdf" }];
  const { body, dropped } = translated("responses", { input: [{ role: "user", content }] }, "messages");
  expect(body.messages).toEqual([
    { role: "user", content: [{ type: "document", source: { type: "url", url: "https://e.org/r.pdf" } }] },
  ]);
  expect(dropped).toEqual([]);
});

test("a null member of an image is not written in another dialect", () => {
  const image = { type: "input_image", file_id: null, detail: null, image_url: "https://e.org/a.png" };
  const { body } = translated("responses", { input: [{ role: "user", content: [image] }] }, "chat");
  expect(body.messages).toEqual([
    { role: "user", content: [{ type: "image_url", image_url: { url: "https://e.org/a.png" } }] },
  ]);
});

describe("a choice among some of the tools", () => {
  const chatTools = ["read", "delete_all"].map((name) => ({
    type: "function",
    function: { name, parameters: { type: "object", properties: {} } },
  }));
  const chatChoice = (mode: string, ...names: string[]) => ({
    type: "allowed_tools",
    allowed_tools: { mode, tools: names.map((name) => ({ type: "function", function: { name } })) },
  });
  const chat = (choice: unknown) => ({
    messages: [{ role: "user", content: "Hi" }],
    tools: chatTools,
    tool_choice: choice,
  });
  const flatChoice = { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "read" }] };
  const responses = {
    input: "Hi",
    tools: chatTools.map(({ function: words }) => ({ type: "function", ...words, strict: false })),
    tool_choice: flatChoice,
  };

  test.each([
    ["chat", chat(chatChoice("required", "read"))],
    ["responses", responses],
  ] as const)("from %s is those tools alone for Claude, and for Gemini", (client, request) => {
    const claude = translated(client, request, "messages");
    expect(claude.body).toMatchObject({ tools: [{ name: "read" }], tool_choice: { type: "any" } });
    expect(claude.dropped).toEqual([]);
    if (client === "chat") return;
    const gemini = translated(client, request, "chat", ableModel("gemini-3.1-pro-preview", "Google"));
    expect(gemini.body).toMatchObject({ tools: [{ function: { name: "read" } }], tool_choice: "required" });
  });

  test("a choice among some of the tools is written in OpenAI's other dialect under that dialect's names", () => {
    expect(translated("chat", chat(chatChoice("required", "read")), "responses").body.tool_choice).toEqual(flatChoice);
    expect(translated("responses", responses, "chat").body.tool_choice).toEqual(chatChoice("required", "read"));
    const namespaced = {
      input: "Hi",
      tools: [{ type: "namespace", name: "files", description: "", tools: responses.tools }],
      tool_choice: {
        ...flatChoice,
        tools: [{ type: "function", name: "read", namespace: "files" }, { type: "web_search" }],
      },
    };
    expect(translated("responses", namespaced, "chat").body.tool_choice).toEqual(chatChoice("required", "files__read"));
    expect(translated("responses", namespaced, "responses").body.tool_choice).toEqual(namespaced.tool_choice);
  });

  test("a choice of auto among some of the tools leaves the choice open; one of tools that are not there is refused", () => {
    expect(translated("chat", chat(chatChoice("auto", "read")), "messages").body).toMatchObject({
      tools: [{ name: "read" }],
      tool_choice: { type: "auto" },
    });
    expect(() => translated("chat", chat(chatChoice("required", "write")), "messages")).toThrow(ProxyError);
  });
});

describe("what OpenAI takes and Anthropic refuses", () => {
  const toClaude = (body: JsonObject) => translated("chat", body, "messages");
  const hi = { role: "user", content: "Hi" };

  test("stop sequences of white space are left out, and named", () => {
    const { body, dropped } = toClaude({ messages: [hi], stop: ["\n\n", "END"] });
    expect(body.stop_sequences).toEqual(["END"]);
    expect(dropped).toEqual(["blank-stop"]);
    expect(toClaude({ messages: [hi], stop: " " }).body).not.toHaveProperty("stop_sequences");
  });

  test.each([
    ["image/jpg", "image/jpeg"],
    ["image/png;name=a.png", "image/png"],
    ["IMAGE/PNG", "image/png"],
  ])("a picture of %s is one of %s", (serialized, media_type) => {
    const picture = { type: "image_url", image_url: { url: `data:${serialized};base64,iVBO` } };
    const { body } = toClaude({ messages: [{ role: "user", content: [picture] }] });
    expect(body.messages).toEqual([
      { role: "user", content: [{ type: "image", source: { type: "base64", media_type, data: "iVBO" } }] },
    ]);
  });

  test("instructions alone are the question", () => {
    const { body, dropped } = toClaude({ messages: [{ role: "developer", content: "Say hello." }] });
    expect(body.messages).toEqual([{ role: "user", content: "Say hello." }]);
    expect(body).not.toHaveProperty("system");
    expect(dropped).toEqual(["system-alone"]);
  });
});

test("a tool that is built into Anthropic's API is named, whoever is asked", () => {
  const tools = [
    { type: "web_fetch_20250910", name: "web_fetch" },
    { type: "code_execution_20250825", name: "code_execution" },
    { name: "f", input_schema: { type: "object", properties: {} } },
  ];
  const request = { max_tokens: 99, messages: [{ role: "user", content: "Hi" }], tools };
  for (const upstream of others)
    expect(translated("messages", request, upstream).dropped).toEqual([
      "web_fetch_20250910",
      "code_execution_20250825",
    ]);
  const own = codecs.messages.fixRequest({ model: "m", ...request }, models.messages);
  expect(own.dropped).toEqual(["web_fetch_20250910", "code_execution_20250825"]);
  const alone = { model: "m", ...request, tools: tools.slice(0, 1) };
  expect(() => codecs.messages.fixRequest(alone, models.messages)).toThrow(/built into Anthropic's own API/);
});

describe("two thinking blocks with a proof each, in one turn", () => {
  const thought = (words: string, proof: string) => ({
    type: "thinking",
    thinking: words,
    signature: `dragoman.chat..${proof}`,
  });
  const turn = (...content: unknown[]) => ({
    max_tokens: 99,
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: [...content, { type: "text", text: "Well." }] },
      { role: "user", content: "And?" },
    ],
  });

  test("the last proof goes up with its own words alone, and the other is named", () => {
    const { body, dropped } = translated("messages", turn(thought("A", "cA"), thought("B", "cB")), "chat");
    expect(body.messages).toContainEqual({
      role: "assistant",
      content: "Well.",
      reasoning_text: "B",
      reasoning_opaque: "cB",
    });
    expect(dropped).toEqual(["thinking"]);
  });

  test("words before a proof that came late are its own; words without one after it are not", () => {
    const bare = (thinking: string) => ({ type: "thinking", thinking, signature: "" });
    const late = translated("messages", turn(bare("A"), thought("", "cA")), "chat");
    expect(late.body.messages).toContainEqual(expect.objectContaining({ reasoning_text: "A", reasoning_opaque: "cA" }));
    expect(late.dropped).toEqual([]);
    const after = translated("messages", turn(thought("A", "cA"), bare("B")), "chat");
    expect(after.body.messages).toContainEqual(
      expect.objectContaining({ reasoning_text: "A", reasoning_opaque: "cA" }),
    );
    expect(after.dropped).toEqual(["thinking"]);
  });
});

test("a schema that Anthropic holds a reply to is strict for OpenAI, where OpenAI can hold it", () => {
  const closed = {
    type: "object",
    properties: { a: { type: "string" } },
    required: ["a"],
    additionalProperties: false,
  };
  const open = { ...closed, required: [] };
  const strictOf = (schema: unknown, upstream: Dialect) => {
    const format = { type: "json_schema", schema };
    const { body } = translated(
      "messages",
      { ...fromMessages({ type: "text", text: "Hi" }), output_config: { format } },
      upstream,
    );
    return JSON.stringify(body.text ?? body.response_format).includes('"strict":true');
  };
  for (const upstream of others) {
    expect(strictOf(closed, upstream)).toBe(true);
    expect(strictOf({ ...closed, properties: { a: { anyOf: [closed, { type: "null" }] } } }, upstream)).toBe(true);
    expect(strictOf(open, upstream)).toBe(false);
    expect(strictOf({ ...closed, properties: { a: open } }, upstream)).toBe(false);
    expect(strictOf({ ...closed, properties: { a: { type: "string", minLength: 1 } } }, upstream)).toBe(false);
  }
});

test("top_logprobs goes up only beside what makes it legal", () => {
  const fromChat = { messages: [{ role: "user", content: "Hi" }], logprobs: true, top_logprobs: 3 };
  expect(translated("chat", fromChat, "responses")).toMatchObject({ dropped: ["logprobs", "top_logprobs"] });
  expect(translated("chat", fromChat, "responses").body).not.toHaveProperty("top_logprobs");
  const fromResponses = { input: "Hi", top_logprobs: 3 };
  expect(translated("responses", fromResponses, "chat").body).not.toHaveProperty("top_logprobs");
  expect(translated("responses", fromResponses, "chat").dropped).toEqual(["top_logprobs"]);
});

test("the pages an answer cites reach a client of chat, counted from the message's start", async () => {
  const part = (text: string, ...annotations: unknown[]) => ({ type: "output_text", text, annotations });
  const cited = { type: "url_citation", url: "https://e.org", title: "E", start_index: 1, end_index: 4 };
  const events = codecs.responses.decodeReply({
    id: "resp_1",
    model: "m",
    status: "completed",
    output: [
      {
        type: "message",
        id: "m1",
        role: "assistant",
        content: [part("One. "), part("Two.", cited, { type: "file_citation" })],
      },
    ],
  });
  const annotations = [
    { type: "url_citation", url_citation: { url: "https://e.org", title: "E", start_index: 6, end_index: 9 } },
  ];
  const asked = codecs.chat.decodeRequest({ model: "m", messages: [{ role: "user", content: "Hi" }] });
  expect(codecs.chat.encodeReply(events, asked).choices).toMatchObject([
    { message: { content: "One. Two.", annotations } },
  ]);
  const chunks = written(codecs.chat.encodeStream(asked), events).map(({ data }) => data);
  expect(chunks.filter((data) => data?.includes("annotations"))).toEqual([
    expect.stringContaining(JSON.stringify({ annotations })),
  ]);
});

describe("a field of the other OpenAI API", () => {
  const hello = { role: "user", content: "Hello." };
  const plain = { chat: { messages: [hello] }, responses: { input: [hello] } };
  /** Fields with a value that is found again wherever it goes. */
  const foreign: Record<"chat" | "responses", Record<string, [value: unknown, needle: string]>> = {
    chat: {
      max_output_tokens: [4321, "4321"],
      instructions: ["Be brief.", "Be brief."],
      reasoning: [{ effort: "medium", note: "why" }, '"medium"'],
      text: [{ verbosity: "low" }, '"low"'],
      truncation: ["auto", "auto"],
      max_tool_calls: [77, "77"],
      context_management: [[{ type: "later" }], "later"],
    },
    responses: {
      max_tokens: [4321, "4321"],
      max_completion_tokens: [4321, "4321"],
      reasoning_effort: ["medium", '"medium"'],
      stop: [["STOP HERE"], "STOP HERE"],
      seed: [4711, "4711"],
      presence_penalty: [0.125, "0.125"],
      response_format: [{ type: "json_schema", json_schema: { name: "n", schema: { title: "odd" } } }, "odd"],
      verbosity: ["low", '"low"'],
      messages: [[{ role: "user", content: "elsewhere" }], "elsewhere"],
      web_search_options: [{ note: "options" }, "options"],
      logit_bias: [{ "17": 23 }, '"17":23'],
      prediction: [{ type: "content", content: "predicted" }, "predicted"],
    },
  };
  const cases = (["chat", "responses"] as const).flatMap((client) =>
    Object.entries(foreign[client]).flatMap(([field, [value, needle]]) =>
      (["chat", "responses", "messages"] as const).map((upstream) => [client, field, upstream, value, needle] as const),
    ),
  );

  test.each(cases)(
    "that a client of %s sends, `%s`, is carried to %s or named",
    (client, field, upstream, value, needle) => {
      const { body, dropped } = translated(client, { ...plain[client], [field]: value }, upstream);
      const isSent = JSON.stringify(body).includes(needle);
      const isNamed = dropped.includes(field) || (field === "text" && dropped.includes("verbosity"));
      expect({ body, dropped, isToldOf: isSent || isNamed }).toMatchObject({ isToldOf: true });
    },
  );

  test("a field of the other OpenAI API gives way to the API's own field, and is named", () => {
    const limits = { max_output_tokens: 50, max_tokens: 4321, reasoning: { effort: "low" }, reasoning_effort: "high" };
    const { body, dropped } = translated("responses", { ...plain.responses, ...limits }, "chat");
    expect(body).toMatchObject({ max_tokens: 50, reasoning_effort: "low" });
    expect(dropped).toEqual(expect.arrayContaining(["max_tokens", "reasoning_effort"]));
  });

  test("that limits thinking by tokens is a budget", () => {
    const { body } = translated("chat", { ...plain.chat, reasoning: { max_tokens: 2000 } }, "messages");
    expect(body).toMatchObject({ thinking: { type: "enabled", budget_tokens: 2000 } });
  });
});
