/** Scenario: Responses, as Codex and OpenAI's package speak them, on models of every upstream dialect. */
import { afterAll, describe, expect, test } from "bun:test";
import { readSse } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { checkResponsesStream } from "../support/grammar-responses";
import { startProxy } from "../support/proxy";
import { until } from "../support/until";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

/** A model of each upstream dialect: responses, messages, chat. */
const models = ["gpt-5.3-codex", "claude-sonnet-4.6", "gemini-3.1-pro-preview"];
const path = "/v1/responses";

// biome-ignore lint/suspicious/noExplicitAny: what upstreams were sent, in three dialects
type Json = any;

/** Asks for a stream, checks it as the strictest reader would, and gives the items that were done. */
async function stream(body: object): Promise<Json[]> {
  const response = await proxy.post(path, { ...body, stream: true });
  const bytes = await response.bytes();
  if (response.status !== 200) throw new Error(`${response.status} ${Buffer.from(bytes)}`);
  const frames = run(readSse, [bytes]);
  checkResponsesStream(frames);
  const events: Json[] = frames.flatMap(({ data }) => (data === undefined ? [] : [JSON.parse(data)]));
  return events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
}

const sent = (): Json => proxy.demo.journal.at(-1)!.body;
const row = () => proxy.rows()[0]!;
const user = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
const textOf = (items: Json[]) =>
  items
    .flatMap(({ content }) => content ?? [])
    .map(({ text }: Json) => text ?? "")
    .join("");

/** What Codex sends with every request. */
const codex = {
  store: false,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "session-1",
  tool_choice: "auto",
  parallel_tool_calls: true,
  service_tier: "priority",
  client_metadata: { session: "1", turn: "{}" },
  text: { verbosity: "low" },
  reasoning: { effort: "medium", summary: "auto", context: "all_turns" },
};

describe.each(models)("on %s", (model) => {
  test("instructions as a developer's message and tools as an item of the input are understood", async () => {
    const tools = [
      {
        type: "namespace",
        name: "functions",
        description: "Tools",
        tools: [
          {
            type: "custom",
            name: "exec",
            description: "Runs JavaScript",
            format: { type: "grammar", syntax: "lark", definition: "start: /.+/" },
          },
        ],
      },
    ];
    const input = [
      { type: "additional_tools", role: "developer", tools },
      { type: "message", role: "developer", content: [{ type: "input_text", text: "You are a careful agent." }] },
      { ...user("Please call exec or functions__exec."), id: "msg_0190-client-made" },
    ];
    const items = await stream({ model, input, ...codex, parallel_tool_calls: false });
    const call = items.find(({ type }) => type === "custom_tool_call");
    expect(call).toMatchObject({ name: "exec", namespace: "functions" });
    expect(typeof call.input).toBe("string");
    expect(JSON.stringify(sent())).toContain("You are a careful agent.");

    const output = { type: "custom_tool_call_output", id: "ctco_1", call_id: call.call_id, output: "exit code 0" };
    const answer = await stream({ model, input: [...input, ...items, output], ...codex });
    expect(textOf(answer)).toContain("exit code 0");
    expect(row()).toMatchObject({ initiator: "agent", error_type: null });
  });

  test("a client that leaves right after the last event has not hung up", async () => {
    const before = proxy.rows().length;
    const controller = new AbortController();
    const response = await proxy.post(
      path,
      { model, input: "Say hello.", stream: true },
      { signal: controller.signal },
    );
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes("event: response.completed")) break;
    }
    controller.abort();
    await until(() => proxy.rows().length === before + 1, "the row is written");
    expect(row()).toMatchObject({ http_status: 200, error_type: null });
  });
});

describe("the endpoint", () => {
  test("a model that offers its own endpoint gets the request as it came, but for named fixups", async () => {
    const body = {
      model: "gpt-5.3-codex",
      store: false,
      include: ["reasoning.encrypted_content"],
      input: [{ role: "user", content: "Hi" }],
      x_brand_new: 1.0,
    };
    const text = JSON.stringify(body).replace('"x_brand_new":1', '"x_brand_new":1.0e0');
    expect((await proxy.post(path, text)).status).toBe(200);
    expect(Buffer.from(proxy.demo.journal.at(-1)!.bytes).toString()).toBe(text);
    expect(JSON.parse(row().fixups)).not.toContain("store");
  });
});
