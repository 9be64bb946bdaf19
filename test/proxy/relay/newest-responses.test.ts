/** Scenario: requests of today's clients to a Responses endpoint that is as strict as it became in 2026. */
import { afterAll, describe, expect, test } from "bun:test";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { startProxy } from "../../support/proxy";

const proxy = await startProxy({ demo: { generation: "C" } });
afterAll(() => proxy[Symbol.asyncDispose]());

type Json = Record<string, unknown>;
const model = "gpt-6-sol";
const look = (name: string) => ({ type: "function", name, parameters: { type: "object", properties: {} } });
const says = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
const call = (call_id: string, name: string, more: Json = {}) => ({
  type: "function_call",
  call_id,
  name,
  arguments: "{}",
  ...more,
});
const output = (call_id: string) => ({ type: "function_call_output", call_id, output: "found" });

/** One answer, and what the upstream was sent for it. */
async function ask(path: string, body: Json) {
  const before = proxy.demo.journal.length;
  const response = await proxy.post(path, body);
  const text = await response.text();
  const calls = proxy.demo.journal.slice(before).filter(({ method }) => method === "POST");
  return { status: response.status, text, calls, sent: calls.at(-1)?.body as Json & { input: Json[]; tools: Json[] } };
}

describe("a namespace of tools", () => {
  const mcp = (description?: string) => ({
    type: "namespace",
    name: "mcp__files",
    ...(description === undefined ? {} : { description }),
    tools: [look("read")],
  });

  test("a namespace of tools without a description is described by its name, wherever it stands", async () => {
    const listed = { type: "additional_tools", role: "developer", tools: [mcp("")] };
    for (const [tools, input] of [
      [[mcp("")], [says("Hi.")]],
      [[mcp()], [says("Hi.")]],
      [[], [listed, says("Hi.")]],
    ]) {
      const { status, calls, sent } = await ask("/v1/responses", { model, store: false, tools, input });
      expect([status, calls.length]).toEqual([200, 1]);
      expect(JSON.stringify(sent)).toContain('"description":"mcp__files"');
    }
  });

  test("a namespace of tools is named in a call whose client has lost it, and the rest of the conversation is as it was", async () => {
    const [words, bare, found] = [says("Hi."), call("call_1", "read"), output("call_1")];
    const input = [words, bare, found];
    const { status, calls, sent } = await ask("/v1/responses", { model, store: false, tools: [mcp("Files.")], input });
    expect([status, calls.length]).toEqual([200, 1]);
    expect(sent.input).toEqual([words, { ...bare, namespace: "mcp__files" }, found]);
  });

  test("a namespace of tools stays in the calls of a conversation that is translated because a tool runs here", async () => {
    const tools = [
      mcp("Files."),
      look("mcp__files__read"),
      { type: "tool_search" },
      { ...look("far"), defer_loading: true },
    ];
    const input = [
      says("Hi."),
      call("call_1", "read", { namespace: "mcp__files" }),
      output("call_1"),
      call("call_2", "mcp__files__read"),
      output("call_2"),
    ];
    const { status, sent } = await ask("/v1/responses", { model: exampleModels.small, store: false, tools, input });
    expect(status).toBe(200);
    // This model has no search of its own: the conversation went through the hub.
    expect(sent.tools.map(({ name }) => name)).toContain("tool_search");
    const calls = sent.input.filter(({ type }) => type === "function_call");
    expect(calls.map(({ name, namespace }) => [name, namespace])).toEqual([
      ["read", "mcp__files"],
      ["mcp__files__read", undefined],
    ]);
  });
});

describe("calls of one id", () => {
  test("calls of one id of a model that counts anew in each turn are told apart, whichever client sends them", async () => {
    const chat = [1, 2].flatMap((turn) => [
      { role: "user", content: `Look ${turn}.` },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "functions.look:0", type: "function", function: { name: "look", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "functions.look:0", content: `result ${turn}` },
    ]);
    const blocks = [1, 2].flatMap((turn) => [
      { role: "user", content: `Look ${turn}.` },
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "look", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: `result ${turn}` }] },
    ]);
    const items = [1, 2].flatMap((turn) => [
      says(`Look ${turn}.`),
      call("call_1", "look"),
      { ...output("call_1"), output: `result ${turn}` },
    ]);
    const parameters = { type: "object", properties: {} };
    for (const [path, body] of [
      [
        "/v1/chat/completions",
        { messages: chat, tools: [{ type: "function", function: { name: "look", parameters } }] },
      ],
      ["/v1/messages", { messages: blocks, max_tokens: 1000, tools: [{ name: "look", input_schema: parameters }] }],
      ["/v1/responses", { input: items, store: false, tools: [look("look")] }],
    ] as const) {
      const { status, calls, sent } = await ask(path, { model, ...body });
      expect([path, status, calls.length]).toEqual([path, 200, 1]);
      const ids = (type: string) => sent.input.filter((item) => item.type === type).map(({ call_id }) => call_id);
      expect(new Set(ids("function_call")).size).toBe(2);
      expect(ids("function_call_output")).toEqual(ids("function_call"));
    }
  });

  test("items that a client sends twice do not fail the request", async () => {
    const first = await ask("/v1/responses", { model, store: false, input: "Think.", reasoning: { effort: "high" } });
    const items = (JSON.parse(first.text) as { output: Json[] }).output;
    const input = [says("Think."), ...items, ...items, says("And now?")];
    const { status, calls } = await ask("/v1/responses", { model, store: false, input });
    expect([status, calls.length]).toEqual([200, 1]);
  });
});
