/** Scenario: Responses, as Codex and OpenAI's package speak them, on models of every upstream dialect. */
import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { readSse } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";
import { checkResponsesStream } from "../support/grammar-responses";
import { startProxy } from "../support/proxy";
import { pixel } from "../support/scenarios";
import { until } from "../support/until";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

/** A model of each upstream dialect: responses, messages, chat. */
const models = ["gpt-5.3-codex", "claude-sonnet-4.6", "gemini-3.1-pro-preview"];
const path = "/v1/responses";

// biome-ignore lint/suspicious/noExplicitAny: what upstreams were sent, in three dialects
type Json = any;

async function post(body: object, at = proxy): Promise<{ status: number; json: Json }> {
  const response = await at.post(path, body);
  return { status: response.status, json: await response.json() };
}

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

  test("tools of every type go or are left out, and calls come back as they were offered", async () => {
    const f = (name: string) => ({
      type: "function",
      name,
      description: name,
      strict: false,
      parameters: { type: "object", properties: {} },
    });
    const tools = [
      f("exec_command"),
      { type: "custom", name: "apply_patch", description: "Patches", format: { type: "text" } },
      {
        type: "namespace",
        name: "multi_agent_v1",
        description: "Agents",
        tools: [f("spawn_agent"), f("exec_command")],
      },
      {
        type: "tool_search",
        execution: "client",
        description: "Search",
        parameters: { type: "object", properties: {} },
      },
      { type: "web_search", external_web_access: false },
      { type: "image_generation", output_format: "png" },
      { type: "local_shell" },
    ];
    const ask = (text: string, ...more: object[]) => stream({ model, input: [user(text), ...more], tools, ...codex });

    const [spawn] = (await ask("Please call spawn_agent or multi_agent_v1__spawn_agent.")).filter(isCall);
    expect(spawn).toMatchObject({ type: "function_call", name: "spawn_agent", namespace: "multi_agent_v1" });
    const [patch] = (await ask("Please call apply_patch.")).filter(isCall);
    expect(patch).toMatchObject({ type: "custom_tool_call", name: "apply_patch" });
    const seen = JSON.stringify(sent().tools);
    expect(seen).not.toContain("image_generation");

    // Outputs may be lists of texts and pictures.
    const output = [
      { type: "input_text", text: "Spawned." },
      { type: "input_image", image_url: `data:image/png;base64,${pixel}`, detail: "high" },
    ];
    const answer = await ask("Please call spawn_agent or multi_agent_v1__spawn_agent.", spawn, {
      type: "function_call_output",
      call_id: spawn.call_id,
      output,
    });
    expect(textOf(answer)).toContain("DEMO");
    expect(JSON.stringify(sent())).toContain(pixel);
    expect(proxy.demo.journal.at(-1)!.headers["copilot-vision-request"]).toBe("true");
  });

  test("items without a type, plain contents, null settings and ids of the client's making are taken", async () => {
    const { status, json } = await post({
      model,
      input: [
        { role: "developer", content: "Be brief." },
        { role: "user", content: "My name is Ada." },
        { type: "message", id: "msg_0000", role: "assistant", content: [{ type: "output_text", text: "Noted." }] },
        { role: "user", content: [{ type: "input_text", text: "Say hello." }] },
      ],
      text: {},
      tools: [{ type: "function", name: "f", description: null, parameters: { type: "object" }, strict: null }],
      instructions: null,
      temperature: null,
      reasoning: null,
      truncation: "auto",
      metadata: { a: "b" },
      user: "u",
      safety_identifier: "s",
      max_output_tokens: 200_000,
      x_brand_new: { a: 1 },
    });
    expect(status).toBe(200);
    expect(json).toMatchObject({ object: "response", status: "completed", model });
    expect(textOf(json.output)).toContain("Hello!");
  });

  test("references to reasoning do not go up", async () => {
    const { status } = await post({ model, input: [{ type: "item_reference", id: "rs_123" }, user("Say hello.")] });
    expect(status).toBe(200);
    expect(JSON.stringify(sent())).not.toContain("rs_123");
    expect(JSON.parse(proxy.rows()[0]!.dropped)).toContain("item_reference");
  });

  test.each([
    ["with its type", { type: "item_reference", id: "msg_123" }],
    ["without a type", { id: "fc_123" }],
  ])(
    "a reference to an item that is not known is refused with 400, before anything is sent: %s",
    async (_, reference) => {
      const before = proxy.demo.journal.length;
      for (const target of [model, "claude-sonnet-4.6"]) {
        const { status, json } = await post({ model: target, input: [user("Hi."), reference, user("Again.")] });
        expect([status, json.error.param, json.error.code]).toEqual([400, "input[1]", "item_not_found"]);
        expect(json.error.message).toContain("`store: false`");
      }
      expect(proxy.demo.journal.length).toBe(before);
    },
  );

  test("what would need a memory of earlier replies is refused, before anything is sent", async () => {
    const before = proxy.demo.journal.length;
    for (const [member, code] of [
      [{ previous_response_id: "resp_1" }, "previous_response_not_found"],
      [{ conversation: "conv_1" }, "unsupported_value"],
      [{ background: true }, "unsupported_value"],
      [{ prompt: { id: "pmpt_1" } }, "unsupported_value"],
    ] as const) {
      const { status, json } = await post({ model, input: "Hi", ...member });
      expect(status).toBe(400);
      expect(json.error).toMatchObject({ code, param: Object.keys(member)[0] });
      expect(json.error.message).toMatch(/\. ./);
    }
    expect(proxy.demo.journal.length).toBe(before);
  });

  test("an unsupported effort is lowered to a supported one, and named", async () => {
    const { status } = await post({ model, input: "Hi", reasoning: { effort: "xhigh" } });
    expect(status).toBe(200);
    expect(`${row().dropped}${row().fixups}`).toMatch(/effort/);
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

const isCall = ({ type }: Json) => /_call$/.test(type) && type !== "web_search_call";

describe("the web search of the upstream", () => {
  const tools = [{ type: "web_search", search_context_size: "low" }];
  const prompt = "Please search the web for dragons.";

  test("`useResponsesApiWebSearch: true` sends it on as it came", async () => {
    const { status, json } = await post({ model: "gpt-5.3-codex", input: prompt, tools });
    expect(status).toBe(200);
    expect(sent().tools).toEqual(tools);
    expect(json.output.map(({ type }: Json) => type)).toContain("web_search_call");
  });

  test("`false` leaves it out, and the rest of the request stays", async () => {
    await using without = await startProxy({ config: { useResponsesApiWebSearch: false } });
    const f = { type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: false };
    expect((await post({ model: "gpt-5.3-codex", input: prompt, tools: [...tools, f] }, without)).status).toBe(200);
    expect((without.demo.journal.at(-1)!.body as Json).tools).toEqual([f]);
    expect(without.rows()[0]!.fixups).toContain("web-search");
    expect((await post({ model: "gpt-5.3-codex", input: prompt, tools }, without)).status).toBe(200);
    expect(without.demo.journal.at(-1)!.body).not.toHaveProperty("tools");
  });

  test("forced where it is not to be had, it is refused", async () => {
    await using without = await startProxy({ config: { useResponsesApiWebSearch: false } });
    const forced = { model: "gpt-5.3-codex", input: prompt, tools, tool_choice: { type: "web_search" } };
    const { status, json } = await post(forced, without);
    expect([status, json.error.param]).toEqual([400, "tool_choice"]);
  });

  test("a model of another maker goes without it where no model may search", async () => {
    await using without = await startProxy({ config: { webSearchModel: "off" } });
    expect((await post({ model: "claude-sonnet-4.6", input: prompt, tools }, without)).status).toBe(200);
    expect(JSON.stringify(without.demo.journal.at(-1)!.body)).not.toContain("web_search");
    expect(without.rows()[0]!.dropped).toContain("web_search");
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

  test("the ids of an item are the same in all its events, though the upstream's differ in each", async () => {
    const response = await proxy.post(path, { model: "gpt-5.3-codex", input: "Say hello.", stream: true });
    const events: Json[] = run(readSse, [await response.bytes()]).flatMap(({ data }) =>
      data ? [JSON.parse(data)] : [],
    );
    const ids = new Map<number, Set<string>>();
    for (const event of events) {
      const id = event.item_id ?? event.item?.id;
      if (id) ids.set(event.output_index, (ids.get(event.output_index) ?? new Set()).add(id));
    }
    expect([...ids.values()].map(({ size }) => size)).toEqual([...ids.values()].map(() => 1));
    expect(row().fixups).toContain("item-ids");
  });

  test("a failure within the stream is `response.failed` with its code, which Codex shows", async () => {
    const response = await proxy.post(path, {
      model: "gpt-5.3-codex",
      input: "[demo: error-event] Say hello.",
      stream: true,
    });
    const text = await response.text();
    expect(text).toMatch(/event: response\.failed\ndata: .*"code":"server_error"/);
    expect(text).not.toContain("response.completed");
  });
});

test("items of another account are left out at the second try, and the conversation goes on", async () => {
  await using two = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  const ask = (input: object[]) =>
    post({ model: "gpt-5.3-codex", input, ...codex, tools: [], parallel_tool_calls: undefined }, two);
  const first = await ask([user("Think, then say hello.")]);
  expect(first.status).toBe(200);
  // The account that made it is used up.
  two.demo.accounts.find(({ login }) => login === "octo-demo")!.quota.premium.remaining = 0;
  const second = await ask([user("Think, then say hello."), ...first.json.output, user("Again.")]);
  expect(second.status).toBe(200);
  expect(two.rows()[0]).toMatchObject({ account_id: "work-demo", http_status: 200 });
  expect(JSON.stringify(two.demo.journal.at(-1)!.body)).not.toMatch(/"encrypted_content":"/);
});

test("the package's own errors come of ours", async () => {
  const client = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: "unused", maxRetries: 0 });
  const failureOf = (input: string, model = "gpt-5.3-codex") =>
    client.responses.create({ model, input }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  expect(await failureOf("[demo: 400-off-topic]")).toBeInstanceOf(OpenAI.BadRequestError);
  expect(await failureOf("[demo: 500]")).toBeInstanceOf(OpenAI.InternalServerError);
  const unknown = await failureOf("Hi", "gpt-5.3-kodex");
  expect(unknown).toBeInstanceOf(OpenAI.NotFoundError);
  // Codex stops at once at this code; at any other 404 it tries on.
  expect(unknown).toMatchObject({ code: "model_not_found" });
});
