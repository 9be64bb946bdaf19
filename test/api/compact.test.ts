/** Compaction: the endpoint that OpenAI's SDK calls, and the trigger that Codex sends with its conversation. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { openFrames } from "../support/frame-client";
import { type RunningProxy, startProxy } from "../support/proxy";

let proxy: RunningProxy;
beforeAll(async () => {
  proxy = await startProxy();
});
afterAll(() => proxy[Symbol.asyncDispose]());

type Item = Record<string, unknown> & { type: string };
const says = (role: "user" | "assistant", text: string) => ({
  type: "message",
  role,
  content: [{ type: role === "user" ? "input_text" : "output_text", text }],
});
const conversation = [
  { type: "message", role: "developer", content: [{ type: "input_text", text: "Be brief." }] },
  says("user", "My name is Ada."),
  says("assistant", "Hello Ada."),
  { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" },
  { type: "function_call_output", call_id: "call_1", output: "a file" },
  says("user", "What is in it?"),
];
const tools = [{ type: "function", name: "look", parameters: { type: "object", properties: {} } }];
const models = ["gpt-5.3-codex", "claude-sonnet-4.6", "gemini-2.5-pro"];
const sent = () => JSON.stringify(proxy.demo.journal.at(-1)!.body);
const compact = async (body: object) => {
  const answer = await proxy.post("/v1/responses/compact", body);
  return { status: answer.status, json: (await answer.json()) as { output: Item[]; object: string } };
};

describe.each(models)("with %s", (model) => {
  test("the endpoint keeps the user's messages and gives a summary, which the next request is answered with", async () => {
    const { status, json } = await compact({ model, input: conversation, tools, instructions: "Work." });
    expect(status).toBe(200);
    expect(json).toMatchObject({ object: "response.compaction", id: expect.stringMatching(/^resp_/), usage: {} });
    expect(json.output.map(({ type, role }) => [type, role])).toEqual([
      ["message", "user"],
      ["message", "user"],
      ["compaction", undefined],
    ]);
    expect(sent()).toContain("Write a summary of this conversation");
    expect(sent()).toContain("a file");
    const [row] = proxy.rows();
    expect(row).toMatchObject({ path: "/v1/responses/compact", http_status: 200, initiator: "agent", stream: 0 });

    const summary = Buffer.from(String(json.output[2]!.encrypted_content).split(".")[2]!, "base64url").toString();
    expect(summary).toStartWith("DEMO");
    const next = await proxy.post("/v1/responses", {
      model,
      store: false,
      input: [...json.output, says("user", "Go on.")],
    });
    expect(next.status).toBe(200);
    const body = sent();
    expect(body).toContain(
      `A summary of the conversation before this point:\\n\\n${JSON.stringify(summary).slice(1, -1)}`,
    );
    expect(body).not.toContain('encrypted_content":"dragoman');
    expect(body).toContain("My name is Ada.");
  });

  test("a trigger in the input is answered with one compaction item, over HTTP and over a WebSocket", async () => {
    const body = { model, store: false, tools, input: [...conversation, { type: "compaction_trigger" }] };
    const text = await (await proxy.post("/v1/responses", { ...body, stream: true })).text();
    const overHttp = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!));
    await using client = await openFrames(proxy.url);
    for (const events of [overHttp, await client.ask(body)]) {
      const done = events.filter(({ type }) => type === "response.output_item.done");
      expect(done).toMatchObject([
        { item: { type: "compaction", encrypted_content: expect.stringMatching(/^dragoman\.summary\./) } },
      ]);
      expect(events.at(-1)).toMatchObject({
        type: "response.completed",
        response: { output: [{ type: "compaction" }] },
      });
      expect(events.some(({ type }) => type.endsWith(".delta"))).toBe(false);
    }
  });
});

test("a summary that was not finished is an error, in the row too", async () => {
  const message = {
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "incomplete",
    content: [{ type: "output_text", text: "The u", annotations: [] }],
  };
  const cut = {
    id: "resp_1",
    object: "response",
    status: "incomplete",
    model: "gpt-5.3-codex",
    incomplete_details: { reason: "max_output_tokens" },
    output: [message],
  };
  const refused = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-4.6",
    stop_reason: "refusal",
    stop_sequence: null,
    content: [],
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  for (const [model, path, answer] of [
    ["gpt-5.3-codex", "/responses", cut],
    ["claude-sonnet-4.6", "/v1/messages", refused],
  ] as const) {
    proxy.demo.intercept(path, () => Response.json(answer));
    const { status, json } = await compact({ model, input: conversation, max_output_tokens: 1000 });
    expect([status, json]).toMatchObject([502, { error: { code: "compaction_failed" } }]);
    expect(proxy.rows()[0]).toMatchObject({ error_type: "compaction_failed", http_status: 502 });
  }
});

test("nothing to summarize, and what is no request, are errors that name the field", async () => {
  const model = "gpt-5.3-codex";
  expect(await compact({ model, input: [] })).toMatchObject({ status: 400, json: { error: { param: "input" } } });
  expect(await compact({ model })).toMatchObject({ status: 400, json: { error: { param: "input" } } });
  expect(await compact({ input: "Hello" })).toMatchObject({ status: 400, json: { error: { param: "model" } } });
  expect((await proxy.post("/v1/responses/compact", "nonsense")).status).toBe(400);
  const unknown = await compact({ model, input: "Hi", previous_response_id: "resp_1" });
  expect(unknown).toMatchObject({ status: 400, json: { error: { code: "previous_response_not_found" } } });
});

test("messages beyond the limit are left to the summary, the oldest first", async () => {
  const input = [
    says("user", "old"),
    says("user", "x".repeat(250_000)),
    says("user", "y".repeat(20_000)),
    says("user", "new"),
  ];
  const { json } = await compact({ model: "gpt-5.3-codex", input });
  expect(json.output.map((item) => JSON.stringify(item).length > 20_000)).toEqual([true, false, false]);
});

test("a turn that goes on after its summary is no person's turn; one that begins after it is", async () => {
  const { json } = await compact({ model: "gpt-5.3-codex", input: conversation });
  const initiators = [];
  for (const more of [[], [says("user", "Thanks. Now the tests.")]]) {
    await proxy.post("/v1/responses", { model: "gpt-5.3-codex", store: false, input: [...json.output, ...more] });
    initiators.push(proxy.rows()[0]!.initiator);
  }
  expect(initiators).toEqual(["agent", "user"]);
});

test("an upstream's own compaction item is sent to it as it is", async () => {
  const item = { type: "compaction", id: "cmp_1", encrypted_content: "not ours" };
  await proxy.post("/v1/responses", { model: "gpt-5.3-codex", store: false, input: [item, says("user", "Hi")] });
  // The demo cannot read it and says so; the request is then repeated without it.
  expect(JSON.stringify(proxy.demo.journal.at(-2)!.body)).toContain(JSON.stringify(item));
});

test("OpenAI's own client compacts a conversation and goes on with it", async () => {
  const openai = new OpenAI({ apiKey: "none", baseURL: `${proxy.url}/v1`, maxRetries: 0 });
  const { output } = await openai.responses.compact({ model: "gpt-5.3-codex", input: conversation as never });
  const input = [...output, says("user", "And now?")] as never;
  const reply = await openai.responses.create({ model: "gpt-5.3-codex", input, store: false });
  expect(reply.output_text).toStartWith("DEMO");
});
