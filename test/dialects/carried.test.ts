/** Rows: what one dialect has a block for is told to a model of every other, or said to be left out. */
import { expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import type { Dialect, JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { adapt } from "../support/adapt";
import { ableModel } from "../support/facts";
import { encodeRequest, fixRequest } from "../support/noted";
import { written } from "../support/streams";

const models: Record<Dialect, ModelFacts> = {
  chat: ableModel("gpt-4.1", "OpenAI"),
  responses: ableModel("gpt-5.3-codex", "OpenAI"),
  messages: ableModel("claude-sonnet-4.6", "Anthropic"),
};

function translated(client: Dialect, body: JsonObject, upstream: Dialect, model = models[upstream]) {
  const adapted = adapt(codecs[client].decodeRequest({ model: "m", ...body }), upstream);
  const encoded = encodeRequest(codecs[upstream], adapted.conversation, model);
  return { body: encoded.body, dropped: [...adapted.dropped, ...encoded.dropped] };
}
const others = ["chat", "responses"] as const;

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
  const own = fixRequest(codecs.messages, { model: "m", ...request }, models.messages);
  expect(own.dropped).toEqual(["web_fetch_20250910", "code_execution_20250825"]);
  const alone = { model: "m", ...request, tools: tools.slice(0, 1) };
  expect(() => codecs.messages.fixRequest(alone, models.messages)).toThrow(/built into Anthropic's own API/);
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
  "a field of the other OpenAI API that a client of %s sends, `%s`, is carried to %s or named",
  (client, field, upstream, value, needle) => {
    const { body, dropped } = translated(client, { ...plain[client], [field]: value }, upstream);
    const isSent = JSON.stringify(body).includes(needle);
    const isNamed = dropped.includes(field) || (field === "text" && dropped.includes("verbosity"));
    expect({ body, dropped, isToldOf: isSent || isNamed }).toMatchObject({ isToldOf: true });
  },
);
