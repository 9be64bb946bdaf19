/**
 * Rows: what an upstream refuses, and what is sent instead: the edges of the rules of each dialect, one request for
 * each.
 */
import { expect, test } from "bun:test";
import { applyRules as applyChat } from "../../src/dialects/chat/rules";
import type { JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { packSignature } from "../../src/dialects/hub/signature";
import { applyRules as applyMessages } from "../../src/dialects/messages/rules";
import { applyRules as applyResponses, refuseStored } from "../../src/dialects/responses/rules";
import { ableModel } from "../support/facts";

const modelOf = (vendor: string): ModelFacts => {
  const able = ableModel("m", vendor);
  const supports = { ...able.supports, adaptiveThinking: false, thinkingBudget: undefined };
  return { ...able, limits: { output: 1000, fullOutput: 800 }, supports };
};
const openAi = modelOf("Azure OpenAI");
const claude = modelOf("Anthropic");
const plain: ModelFacts = { ...openAi, supports: { ...openAi.supports, structuredOutputs: false } };
const fixed: ModelFacts = { ...openAi, supports: { ...openAi.supports, fixedSampling: true } };
const hi = [{ role: "user", content: "Hi" }];
const system = [{ role: "system", content: "Be kind." }];

type Case = [title: string, given: JsonObject, sent: JsonObject, dropped?: string[], model?: ModelFacts];

/** Only the named members of what is sent are compared; undefined: not sent. */
function check(
  apply: (given: JsonObject, model: ModelFacts) => { body: JsonObject; dropped: string[] },
  model: ModelFacts,
) {
  return (_: string, given: JsonObject, sent: JsonObject, dropped: string[] = [], other = model) => {
    const { body, dropped: left } = apply({ model: "m", ...given }, other);
    expect(Object.fromEntries(Object.keys(sent).map((name) => [name, body[name]]))).toEqual(sent);
    expect(left).toEqual(dropped);
  };
}

const tool = (parameters: unknown) => ({ type: "function", function: { name: "f", parameters } });
const schema = { type: "object", properties: { a: { type: "string" } } };

test.each<Case>([
  ["one answer is asked of a model that gives one", { n: 1 }, { n: 1 }, [], claude],
  ["several answers are asked of OpenAI", { n: 2 }, { n: 2 }],
  ["a limit of output stands at the model's", { max_tokens: 1000, stream: true }, { max_tokens: 1000 }],
  [
    "a limit of output is lowered",
    { max_tokens: 1001, stream: true },
    { max_tokens: 1000 },
    ["max_tokens lowered to 1000"],
  ],
  [
    "a limit of whole replies is the smaller one",
    { max_tokens: 900 },
    { max_tokens: 800 },
    ["max_tokens lowered to 800"],
  ],
  ["no limit of output stays none", {}, { max_tokens: undefined, max_completion_tokens: undefined }],
  [
    "the newer name of the limit becomes the known one",
    { max_completion_tokens: 9 },
    { max_tokens: 9, max_completion_tokens: undefined },
  ],
  ["both samplings go to OpenAI", { temperature: 1, top_p: 1 }, { temperature: 1, top_p: 1 }],
  [
    "Claude gets one of two samplings",
    { temperature: 1, top_p: 1 },
    { temperature: 1, top_p: undefined },
    ["top_p"],
    claude,
  ],
  ["Claude gets a single sampling", { top_p: 1 }, { top_p: 1 }, [], claude],
  [
    "a model of fixed sampling gets none",
    { temperature: 1, top_p: null },
    { temperature: undefined },
    ["temperature"],
    fixed,
  ],
  ["four stops go to OpenAI", { stop: ["1", "2", "3", "4"] }, { stop: ["1", "2", "3", "4"] }],
  [
    "a fifth stop is left out for OpenAI",
    { stop: ["1", "2", "3", "4", "5"] },
    { stop: ["1", "2", "3", "4"] },
    ["stop after the first 4"],
  ],
  ["five stops go to others", { stop: ["1", "2", "3", "4", "5"] }, { stop: ["1", "2", "3", "4", "5"] }, [], claude],
  ["usage is asked for in a stream", { stream: true }, { stream_options: { include_usage: true } }],
  ["usage is not asked for in a whole reply", { stream: false }, { stream_options: undefined }],
  [
    "usage that is asked for stays as it is",
    { stream: true, stream_options: { include_usage: true, x: 1 } },
    { stream_options: { include_usage: true, x: 1 } },
  ],
  [
    "an empty list of tools goes with the choice auto",
    { tools: [], tool_choice: "auto", parallel_tool_calls: true },
    { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined },
  ],
  [
    "an empty list of tools goes with the choice none",
    { tools: [], tool_choice: "none" },
    { tools: undefined, tool_choice: undefined },
  ],
  [
    "an empty list of tools goes with a null choice",
    { tools: [], tool_choice: null },
    { tools: undefined, tool_choice: undefined },
  ],
  [
    "a choice that needs a tool stays, to be refused",
    { tools: [], tool_choice: "required" },
    { tools: undefined, tool_choice: "required" },
  ],
  [
    "a choice stays with its tools",
    { tools: [tool(schema)], tool_choice: "auto", parallel_tool_calls: true },
    { tool_choice: "auto", parallel_tool_calls: true },
  ],
  [
    "a tool without a schema gets an empty one",
    { tools: [tool(undefined)] },
    { tools: [tool({ type: "object", properties: {} })] },
  ],
  [
    "an object without properties gets none",
    { tools: [tool({ type: "object" })] },
    { tools: [tool({ type: "object", properties: {} })] },
  ],
  ["a schema that is whole stays", { tools: [tool(schema)] }, { tools: [tool(schema)] }],
  ["a schema that is no object's stays", { tools: [tool({ type: "string" })] }, { tools: [tool({ type: "string" })] }],
  ["a schema that is no schema stays", { tools: [tool("x")] }, { tools: [tool("x")] }],
  ["a function without a definition stays", { tools: [{ type: "function" }] }, { tools: [{ type: "function" }] }],
  [
    "a tool that is no function stays",
    { tools: [{ ...tool({ type: "object" }), type: "custom" }] },
    { tools: [{ ...tool({ type: "object" }), type: "custom" }] },
  ],
  [
    "a budget of thinking stays below the limit of output",
    { max_tokens: 700, thinking_budget: 900 },
    { max_tokens: 700, thinking_budget: 699 },
    ["thinking_budget 900 changed to 699"],
    { ...openAi, supports: { ...openAi.supports, efforts: [], thinkingBudget: { min: 100, max: 5000 } } },
  ],
  [
    "structured output stays where it is supported",
    { messages: hi, response_format: { type: "json_object" } },
    { messages: hi, response_format: { type: "json_object" } },
  ],
  [
    "plain text is no structured output",
    { messages: hi, response_format: { type: "text" } },
    { messages: hi, response_format: { type: "text" } },
    [],
    plain,
  ],
  [
    "structured output is asked for in words elsewhere",
    { messages: hi, response_format: { type: "json_object" } },
    {
      response_format: undefined,
      messages: [
        { role: "system", content: "Answer without a code fence and with nothing but one JSON object." },
        ...hi,
      ],
    },
    ["response_format replaced by an instruction"],
    plain,
  ],
  [
    "structured output is asked for behind the instructions where they are all there is",
    { messages: [...system, ...system], response_format: { type: "json_object" } },
    {
      messages: [
        ...system,
        ...system,
        { role: "system", content: "Answer without a code fence and with nothing but one JSON object." },
      ],
    },
    ["response_format replaced by an instruction"],
    plain,
  ],
  [
    "fields that are not known go",
    { store: true, metadata: {}, service_tier: null },
    { store: undefined, metadata: undefined, service_tier: undefined },
    ["store", "metadata"],
  ],
  [
    "Claude is asked to continue",
    { messages: [...hi, { role: "assistant", content: "He" }] },
    { messages: [...hi, { role: "assistant", content: "He" }, { role: "user", content: "Please continue." }] },
    ["no-prefill"],
    claude,
  ],
  [
    "OpenAI is not asked to continue",
    { messages: [...hi, { role: "assistant", content: "He" }] },
    { messages: [...hi, { role: "assistant", content: "He" }] },
  ],
])("chat: %s", check(applyChat, openAi));

test("chat: two answers of a model that gives one are refused, and of OpenAI they are not", () => {
  expect(() => applyChat({ n: 2 }, claude)).toThrow("`n` must be 1");
  expect(() => applyChat({ n: 2 }, openAi)).not.toThrow();
});

const called = { type: "function", name: "f", strict: true, parameters: schema };
const space = (given: object) => ({ type: "namespace", name: "files", tools: [called], ...given });
const packed = packSignature({ dialect: "messages", value: "x" }, "responses");
const effortless: ModelFacts = { ...openAi, supports: { ...openAi.supports, efforts: [] } };
const asked = (given: JsonObject) => ({ input: "Hi", ...given });

test.each<Case>([
  ["a stored reply is told of", asked({ store: true }), { store: false }, ["store"]],
  ["nothing is told of a reply that is not stored", asked({ store: false }), { store: false }],
  ["nothing is told where storage is not mentioned", asked({}), { store: false }],
  ["a service tier is told of", asked({ service_tier: "flex" }), { service_tier: undefined }, ["service_tier"]],
  ["a null service tier is not told of", asked({ service_tier: null }), { service_tier: undefined }],
  [
    "strict is said where it is missing",
    asked({ tools: [{ ...called, strict: undefined }] }),
    { tools: [{ ...called, strict: false }] },
  ],
  ["strict is kept where it is said", asked({ tools: [called] }), { tools: [called] }],
  [
    "tools in a namespace say strict too",
    asked({ tools: [space({ description: "d", tools: [{ ...called, strict: null }] })] }),
    { tools: [space({ description: "d", tools: [{ ...called, strict: false }] })] },
  ],
  [
    "a namespace without a description is described by its name",
    asked({ tools: [space({})] }),
    { tools: [space({ description: "files" })] },
  ],
  [
    "a namespace with blanks is described by its name",
    asked({ tools: [space({ description: " " })] }),
    { tools: [space({ description: "files" })] },
  ],
  ["a tool without a type stays, to be refused", asked({ tools: [{ name: "f" }] }), { tools: [{ name: "f" }] }],
  [
    "a search for tools that found no list stays",
    { input: [{ type: "tool_search_output", call_id: "c" }] },
    { input: [{ type: "tool_search_output", call_id: "c" }] },
  ],
  [
    "a namespace in another list of tools is not described",
    { input: [{ type: "mcp_list_tools", tools: [space({})] }] },
    { input: [{ type: "mcp_list_tools", tools: [space({})] }] },
  ],
  [
    "a namespace that is found is described too",
    { input: [{ type: "tool_search_output", call_id: "c", tools: [space({})] }] },
    { input: [{ type: "tool_search_output", call_id: "c", tools: [space({ description: "files" })] }] },
  ],
  [
    "a limit of output stands at the model's",
    asked({ max_output_tokens: 1000, stream: true }),
    { max_output_tokens: 1000 },
  ],
  [
    "a limit of whole replies is the smaller one",
    asked({ max_output_tokens: 900 }),
    { max_output_tokens: 800 },
    ["max_tokens set to 800"],
  ],
  [
    "OpenAI gets no limit below 16",
    asked({ max_output_tokens: 15 }),
    { max_output_tokens: 16 },
    ["max_tokens set to 16"],
  ],
  ["a limit of 16 stays", asked({ max_output_tokens: 16 }), { max_output_tokens: 16 }],
  ["others get a limit of 1", asked({ max_output_tokens: 1 }), { max_output_tokens: 1 }, [], modelOf("Google")],
  [
    "an effort that the model lacks is left out, with what held it",
    asked({ reasoning: { effort: "high" } }),
    { reasoning: undefined },
    ["effort high left out"],
    effortless,
  ],
  [
    "an effort that the model lacks takes nothing else along",
    asked({ reasoning: { effort: "high", summary: "auto" } }),
    { reasoning: { summary: "auto" } },
    ["effort high left out"],
    effortless,
  ],
  ["reasoning that is null stays", asked({ reasoning: null }), { reasoning: null }],
  [
    "tools within another kind of tool stay as they are",
    asked({ tools: [{ type: "mcp", server_label: "x", tools: [{ type: "function", name: "f" }] }] }),
    { tools: [{ type: "mcp", server_label: "x", tools: [{ type: "function", name: "f" }] }] },
  ],
  ["an effort that the model has stays", asked({ reasoning: { effort: "high" } }), { reasoning: { effort: "high" } }],
  [
    "ids of calls go, and those of their output",
    {
      input: [
        { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", id: "o", call_id: "c", output: "x" },
      ],
    },
    {
      input: [
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "x" },
      ],
    },
  ],
  [
    "the id of a message without a type goes",
    { input: [{ id: "msg_1", role: "user", content: "Hi" }] },
    { input: [{ role: "user", content: "Hi" }] },
  ],
  [
    "the id of another kind of item stays",
    { input: [{ id: "r_1", type: "reasoning", encrypted_content: "x", summary: [] }] },
    { input: [{ id: "r_1", type: "reasoning", encrypted_content: "x", summary: [] }] },
  ],
  [
    "an item without type and role keeps its id",
    { input: [{ id: "x_1", content: "Hi" }] },
    { input: [{ id: "x_1", content: "Hi" }] },
  ],
  ["unsigned reasoning goes", { input: [...hi, { type: "reasoning", summary: [] }] }, { input: hi }, ["thinking"]],
  [
    "reasoning that was packed for another dialect goes",
    { input: [...hi, { type: "reasoning", summary: [], encrypted_content: packed }] },
    { input: hi },
    ["thinking"],
  ],
  [
    "an item of another kind stays, whatever it holds",
    { input: [...hi, { type: "compaction", encrypted_content: packed }] },
    { input: [...hi, { type: "compaction", encrypted_content: packed }] },
  ],
  [
    "signed reasoning stays",
    { input: [...hi, { type: "reasoning", summary: [], encrypted_content: "x" }] },
    { input: [...hi, { type: "reasoning", summary: [], encrypted_content: "x" }] },
  ],
  [
    "a drawn image is not available",
    asked({ tools: [called, { type: "image_generation" }] }),
    { tools: [called] },
    ["image_generation"],
  ],
])(
  "responses: %s",
  check((body, model) => applyResponses(body, model, { webSearch: false }), openAi),
);

test("responses: a tool that must be called and is not available is refused, unless another one may be called", () => {
  const apply = (body: JsonObject) => () => applyResponses(body, openAi, { webSearch: false });
  const image = { type: "image_generation" };
  const required = { model: "m", tool_choice: "required" };
  expect(apply({ ...required, input: "Hi", tools: [image] })).toThrow("not available here: the only one");
  expect(apply({ ...required, input: "Hi", tools: [image, called] })).not.toThrow();
  const further = { type: "additional_tools", tools: [called] };
  expect(apply({ ...required, input: [...hi, further], tools: [image] })).not.toThrow();
  expect(apply({ ...required, input: hi, tools: [image] })).toThrow("not available here");
  expect(apply({ model: "m", tool_choice: image, input: "Hi", tools: [image] })).toThrow("image_generation");
});

test("responses: what needs stored replies is refused by its name, and nothing else", () => {
  for (const name of ["previous_response_id", "conversation", "prompt"]) {
    expect(() => refuseStored({ [name]: "x" })).toThrow(`\`${name}\` names is not known`);
    expect(() => refuseStored({ [name]: null })).not.toThrow();
  }
  expect(() => refuseStored({ background: true })).toThrow("`background` cannot be true");
  expect(() => refuseStored({ background: false })).not.toThrow();
});

const marked = (control: JsonObject) => [
  { role: "user", content: [{ type: "text", text: "Hi", cache_control: control }] },
];
const client = { name: "f", input_schema: { type: "object", properties: {} } };

test.each<Case>([
  [
    "an hour's cache becomes the usual one",
    { messages: marked({ type: "ephemeral", ttl: "1h" }) },
    { messages: marked({ type: "ephemeral" }) },
  ],
  [
    "five minutes are the usual ones",
    { messages: marked({ type: "ephemeral", ttl: "5m" }) },
    { messages: marked({ type: "ephemeral" }) },
  ],
  [
    "a mark without a lifetime stays",
    { messages: marked({ type: "ephemeral" }) },
    { messages: marked({ type: "ephemeral" }) },
  ],
  [
    "an empty list of tools goes, with the choice",
    { messages: hi, tools: [], tool_choice: { type: "auto" } },
    { tools: undefined, tool_choice: undefined },
  ],
  [
    "a choice stays with its tools",
    { messages: hi, tools: [client], tool_choice: { type: "auto" } },
    { tools: [client], tool_choice: { type: "auto" } },
  ],
  [
    "a schema gets its type",
    { messages: hi, tools: [{ ...client, input_schema: { properties: {} } }] },
    { tools: [client] },
  ],
  ["a missing schema is an empty one", { messages: hi, tools: [{ name: "f" }] }, { tools: [client] }],
  [
    "a schema keeps its own type",
    { messages: hi, tools: [{ ...client, input_schema: { type: "string" } }] },
    { tools: [{ ...client, input_schema: { type: "string" } }] },
  ],
  [
    "a schema loses its dialect",
    { messages: hi, tools: [{ ...client, input_schema: { ...client.input_schema, $schema: "x" } }] },
    { tools: [client] },
  ],
  [
    "a tool loses what is not known",
    { messages: hi, tools: [{ ...client, strict: true, input_examples: [], allowed_callers: [] }] },
    { tools: [client] },
  ],
  ["blank stops go", { messages: hi, stop_sequences: [" ", "x", ""] }, { stop_sequences: ["x"] }],
  ["only blank stops are none", { messages: hi, stop_sequences: ["\n"] }, { stop_sequences: undefined }],
  ["stops with text stay", { messages: hi, stop_sequences: ["a", " b"] }, { stop_sequences: ["a", " b"] }],
  [
    "fields that are not known are told of if they had a value",
    { messages: hi, service_tier: "auto", inference_geo: null },
    { service_tier: undefined, inference_geo: undefined },
    ["service_tier"],
  ],
  ["judging is not asked for", { messages: hi, safeguards: {} }, { safeguards: undefined }, ["safeguards"]],
  [
    "a server's tool goes if others stay",
    { messages: hi, tools: [client, { type: "web_search_20250305", name: "web_search" }] },
    { tools: [client] },
    ["web_search_20250305"],
  ],
  [
    "a client's tool of the type custom stays",
    { messages: hi, tools: [{ ...client, type: "custom" }] },
    { tools: [{ ...client, type: "custom" }] },
  ],
])(
  "messages: %s",
  check((body, model) => applyMessages({ max_tokens: 100, ...body }, model, { webSearch: false }), claude),
);

test("messages: an hour's cache is asked for where the owner wants it, unless it was refused", () => {
  const body = { model: "m", max_tokens: 100, messages: marked({ type: "ephemeral", ttl: "1h" }) };
  expect(applyMessages(body, claude, { webSearch: false, hourCache: true }).body.messages).toEqual(body.messages);
  const minutes = { ...body, messages: marked({ type: "ephemeral", ttl: "5m" }) };
  expect(applyMessages(minutes, claude, { webSearch: false, hourCache: true }).body.messages).toEqual(
    marked({ type: "ephemeral" }),
  );
});

test("messages: a server's tool is refused if nothing is left without it, or if it must be called", () => {
  const server = { type: "web_fetch_20250910", name: "web_fetch" };
  const apply = (body: JsonObject) => () =>
    applyMessages({ model: "m", max_tokens: 9, messages: hi, ...body }, claude, { webSearch: false });
  expect(apply({ tools: [server] })).toThrow("The tool `web_fetch_20250910` is built into Anthropic's own API");
  expect(apply({ tools: [server, client], tool_choice: { type: "tool", name: "web_fetch" } })).toThrow(
    "web_fetch_20250910",
  );
  expect(apply({ tools: [server, client], tool_choice: { type: "tool", name: "f" } })).not.toThrow();
});
