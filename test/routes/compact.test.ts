/** Scenario: compaction: the endpoint that OpenAI's SDK calls, and the trigger that Codex sends with its conversation. */
import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { eventsIn } from "../support/event-stream";
import { openFrames } from "../support/frame-client";
import { type RunningProxy, startProxy } from "../support/proxy";

const proxy = await startProxy();
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
    const overHttp = eventsIn(text);
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

test("an upstream's own compaction item is sent to it as it is, and is not left out when it cannot be read", async () => {
  const item = { type: "compaction", id: "cmp_1", encrypted_content: "not ours" };
  const body = { model: "gpt-5.3-codex", store: false, input: [item, says("user", "Hi")] };
  const answer = await proxy.post("/v1/responses", body);
  expect(JSON.stringify(proxy.demo.journal.at(-2)!.body)).toContain(JSON.stringify(item));
  // It is the conversation: without it the model would answer another one.
  expect(sent()).toContain('"not ours"');
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    { error: { code: "invalid_encrypted_content", message: expect.stringContaining("could not be verified") } },
  ]);
});

test("the newest message stays beside the summary whatever its size: pictures count little, and words are cut", async () => {
  const picture = { type: "input_image", image_url: `data:image/png;base64,${"A".repeat(400_000)}` };
  const words = { type: "input_text", text: "Fix the button." };
  const seen = await compact({
    model: "gpt-5.3-codex",
    input: [says("user", "First."), { type: "message", role: "user", content: [words, picture] }],
  });
  expect(seen.json.output.map(({ content }) => (content as unknown[] | undefined)?.length)).toEqual([1, 2, undefined]);
  const long = await compact({
    model: "gpt-5.3-codex",
    input: [says("user", "First."), says("user", `${"x".repeat(255_999)}${"😀".repeat(20_000)}`)],
  });
  const kept = long.json.output.filter(({ type }) => type === "message") as unknown as {
    content: { text: string }[];
  }[];
  expect(kept.map(({ content }) => content[0]!.text)).toEqual(["x".repeat(255_999)]);
});

test("OpenAI's own client compacts a conversation and goes on with it", async () => {
  const openai = new OpenAI({ apiKey: "none", baseURL: `${proxy.url}/v1`, maxRetries: 0 });
  const { output } = await openai.responses.compact({ model: "gpt-5.3-codex", input: conversation as never });
  const input = [...output, says("user", "And now?")] as never;
  const reply = await openai.responses.create({ model: "gpt-5.3-codex", input, store: false });
  expect(reply.output_text).toStartWith("DEMO");
});

describe("an upstream that makes summaries itself", () => {
  const newest = (accounts?: string[]) => startProxy({ demo: { generation: "C" }, accounts });
  const input = [...conversation, { type: "compaction_trigger" }];
  const ask = (more: object = {}) => ({ model: "gpt-6-sol", store: false, tools, input, ...more });
  const posts = (proxy: RunningProxy) => proxy.demo.journal.filter(({ path }) => path === "/responses");
  const compacted = async (proxy: RunningProxy, body: object) =>
    ((await (await proxy.post("/v1/responses", body)).json()) as { output: Item[] }).output;

  test("an upstream that makes summaries itself is asked to, and its item goes back to it as it was", async () => {
    await using proxy = await newest();
    const output = await compacted(proxy, ask());
    expect(output.map(({ type }) => type)).toEqual(["compaction"]);
    expect(output[0]!.encrypted_content).not.toStartWith("dragoman");
    expect(JSON.stringify(posts(proxy).at(-1)!.body)).toContain('{"type":"compaction_trigger"}');
    expect(JSON.stringify(posts(proxy).at(-1)!.body)).not.toContain("Write a summary");
    expect(proxy.rows()[0]).toMatchObject({ initiator: "agent", http_status: 200 });

    const next = await proxy.post("/v1/responses", ask({ input: [...output, says("user", "Go on.")] }));
    expect(next.status).toBe(200);
    expect(posts(proxy).length).toBe(2);
    const sent = posts(proxy).at(-1)!.body as { input: Item[] };
    expect(sent.input[0]!.encrypted_content).toBe(output[0]!.encrypted_content);
  });

  test("an upstream that answers a compaction with two items gives the client one, which stands for both", async () => {
    await using proxy = await newest();
    for (const stream of [false, true]) {
      const text = await (await proxy.post("/v1/responses", ask({ model: exampleModels.small, stream }))).text();
      const events = stream ? eventsIn(text) : [];
      const { output } = (stream ? events.at(-1).response : JSON.parse(text)) as { output: Item[] };
      expect(output.map(({ type }) => type)).toEqual(["compaction"]);
      if (stream) expect(events.filter(({ type }) => type === "response.output_item.done").length).toBe(1);
      const next = await proxy.post(
        "/v1/responses",
        ask({ model: exampleModels.small, input: [...output, says("user", "Go on.")] }),
      );
      expect(next.status).toBe(200);
      const sent = posts(proxy).at(-1)!.body as { input: Item[] };
      expect(sent.input.map(({ type }) => type)).toEqual(["compaction", "compaction", "message"]);
      expect(JSON.stringify(sent)).not.toContain("dragoman");
    }
  });

  test("serves the endpoint of OpenAI's SDK as well, beside the newest messages of the user", async () => {
    await using proxy = await newest();
    const answer = await proxy.post("/v1/responses/compact", { model: "gpt-6-sol", input: conversation, tools });
    const { output } = (await answer.json()) as { output: Item[] };
    expect(output.map(({ type, role }) => [type, role])).toEqual([
      ["message", "user"],
      ["message", "user"],
      ["compaction", undefined],
    ]);
  });

  test("an upstream that makes summaries itself gets the summary back on the account that made it", async () => {
    await using proxy = await newest(["octo-demo", "plus-demo"]);
    proxy.demo.intercept("/responses", () => Response.json({ error: { message: "Slow." } }, { status: 429 }));
    const output = await compacted(proxy, ask());
    const maker = posts(proxy).at(-1)!.account;
    expect(maker).toBe("plus-demo");
    proxy.app.accounts.find(({ id }) => id === "octo-demo")!.setState({ name: "ready" });
    const next = await proxy.post("/v1/responses", ask({ input: [...output, says("user", "Go on.")] }));
    expect([next.status, posts(proxy).at(-1)!.account]).toEqual([200, maker!]);
  });

  test("that refuses is asked once: from then on the model writes the summary in words", async () => {
    await using proxy = await startProxy({ demo: { generation: "A" } });
    const body = ask({ model: "gpt-5.3-codex" });
    for (const calls of [2, 3]) {
      const output = await compacted(proxy, body);
      expect(output[0]!.encrypted_content).toStartWith("dragoman.summary.");
      expect(posts(proxy).length).toBe(calls);
      expect(JSON.stringify(posts(proxy).at(-1)!.body)).toContain("Write a summary of this conversation");
    }
    const fixups = proxy.rows().map((row) => JSON.parse(row.fixups).includes("refused:compaction_trigger"));
    expect(fixups).toEqual([false, true]);
    expect(proxy.app.unsupportedParams.known("gpt-5.3-codex")).toEqual(["compaction_trigger"]);
  });

  test("that takes the request and makes none is not asked again", async () => {
    await using proxy = await newest();
    const message = { type: "message", id: "msg_1", role: "assistant", status: "completed" };
    const content = [{ type: "output_text", text: "Hello.", annotations: [] }];
    const output = [{ ...message, content }];
    const plain = { id: "resp_1", object: "response", status: "completed", model: "gpt-6-sol", output };
    proxy.demo.intercept("/responses", () => Response.json(plain));
    expect((await compacted(proxy, ask()))[0]!.encrypted_content).toStartWith("dragoman.summary.");
    expect(posts(proxy).length).toBe(2);
    expect((await compacted(proxy, ask()))[0]!.encrypted_content).toStartWith("dragoman.summary.");
    expect(posts(proxy).length).toBe(3);
  });

  test("has made what a model of another maker cannot read: that is said, and nothing is lost", async () => {
    await using proxy = await newest();
    const output = await compacted(proxy, ask());
    const calls = proxy.demo.journal.length;
    const next = await proxy.post("/v1/responses", {
      model: "claude-sonnet-4.6",
      input: [...output, says("user", "Go on.")],
    });
    expect(next.status).toBe(400);
    expect(await next.text()).toContain("only models of its maker can read");
    expect(proxy.demo.journal.length).toBe(calls);
  });
});
