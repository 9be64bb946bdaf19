/** Rows: what Claude Code, Codex and opencode send and meet, shortened. */
import { afterAll, describe, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";
import { until } from "../support/until";

const proxy = await startProxy();
const newest = await startProxy({ demo: { generation: "C" } });
afterAll(async () => {
  for (const each of [proxy, newest]) await each[Symbol.asyncDispose]();
});

/** Claude Code's first request, shortened, with an id as Anthropic spells it. */
const first = (model: string, stream: boolean) => ({
  model,
  messages: [
    {
      role: "user",
      content: [
        {
          type: "text",
          text: "<system-reminder>\n# Environment\n - Primary working directory: /home/me\n</system-reminder>",
        },
        { type: "text", text: "Hello", cache_control: { type: "ephemeral" } },
      ],
    },
  ],
  system: [{ type: "text", text: "You are a Claude agent.", cache_control: { type: "ephemeral" } }],
  tools: [{ name: "Bash", description: "Runs a command.", input_schema: { type: "object", properties: {} } }],
  max_tokens: 8000,
  thinking: { type: "adaptive", display: "omitted" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
  stream,
});

for (const stream of [true, false])
  test(`a model by the name Anthropic gives it reaches Copilot by Copilot's, ${stream ? "streamed" : "full"}`, async () => {
    const answer = await proxy.post("/v1/messages?beta=true", first("claude-sonnet-4-6", stream));
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('"model":"claude-sonnet-4-6"');
    expect(proxy.demo.journal.at(-1)?.body).toMatchObject({ model: "claude-sonnet-4.6" });
    expect(JSON.parse(proxy.rows()[0]!.fixups)).toContain("model-name");
  });

test("a base URL that ends in /v1 is as good as one that does not", async () => {
  const answer = await proxy.post("/v1/v1/messages?beta=true", first("claude-sonnet-4.6", true));
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain("message_stop");
  const counted = await proxy.post("/v1/v1/messages/count_tokens?beta=true", {
    model: "claude-sonnet-4.6",
    messages: [{ role: "user", content: "Hello" }],
  });
  expect(await counted.json()).toEqual({ input_tokens: expect.any(Number) });
  const unknown = await proxy.post("/v1/v1/messages?beta=true", first("no-such-model", true));
  expect(unknown.status).toBe(404);
  expect(await unknown.json()).toMatchObject({ type: "error", error: { type: "not_found_error" } });
});

for (const model of ["claude-sonnet-4.6", "gpt-5.3-codex", "gemini-3.1-pro-preview"])
  test(`the demo's ${model} does nothing again because a background agent reports`, async () => {
    const { tools, system } = first(model, false);
    const answer = await proxy.post("/v1/messages?beta=true", {
      model,
      max_tokens: 8000,
      system,
      tools,
      messages: [
        { role: "user", content: "call Bash" },
        { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "Bash", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "Launched." }] },
        { role: "assistant", content: [{ type: "text", text: "It runs." }] },
        { role: "user", content: [{ type: "text", text: "<system-reminder>\nAgent finished.\n</system-reminder>" }] },
      ],
    });
    expect(await answer.json()).toMatchObject({ stop_reason: "end_turn" });
  });

test("Claude Code's list has every chat model of the picker under an id that it takes, says what each costs, and each id is served", async () => {
  const asked = {
    headers: { "user-agent": "claude-code/2.1.330", authorization: "Bearer unused", "x-api-key": "unused" },
  };
  const list = async (init?: RequestInit) =>
    (
      (await (await fetch(`${newest.url}/v1/models?limit=1000`, init)).json()) as {
        data: { id: string; display_name: string }[];
      }
    ).data;
  const listed = await list(asked);
  const ids = listed.map(({ id }) => id);
  const names = listed.map(({ display_name }) => display_name);
  expect(names).toEqual([...new Set(names)]);
  expect(ids.filter((id) => !/claude|anthropic/i.test(id))).toEqual([]);
  expect(ids).toEqual(
    expect.arrayContaining(["claude-opus-5-5", "claude-sonnet-4-6", "gpt-6.1-sol:claude", "gemini-3.8-flash:claude"]),
  );
  expect(ids.some((id) => id.includes("embedding"))).toBe(false);
  expect(listed.find(({ id }) => id === "gpt-6.1-sol:claude")).toMatchObject({
    display_name: "GPT-6.1 Sol",
    description: "200/1,000 credits per M in/out · 272K prompt",
  });
  for (const id of ["claude-opus-5-5", "gpt-6.1-sol:claude", "gemini-3.8-flash:claude"]) {
    const answer = await newest.post("/v1/messages?beta=true", first(id, false));
    expect([id, answer.status]).toEqual([id, 200]);
  }
  expect(newest.rows().map(({ upstream_model }) => upstream_model)).toEqual([
    "gemini-3.8-flash",
    "gpt-6.1-sol",
    "claude-opus-5.5",
  ]);
  expect((await list()).map(({ id }) => id)).toContain("gpt-6.1-sol");
});

const turn = {
  model: "gpt-5.3-codex",
  stream: true,
  store: false,
  input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] }],
};

test("a client without its key reads how to send one: the placeholder is no secret", async () => {
  await using proxy = await startProxy({ config: { auth: { apiKeys: ["key-of-a-client"] } } });
  const answer = await proxy.post("/v1/responses", turn);
  expect(answer.status).toBe(401);
  const { error } = (await answer.json()) as { error: { message: string } };
  expect(error.message).toContain("`x-api-key: <key>`, `x-goog-api-key: <key>` or `Authorization: Bearer <key>`");
});

describe("the model list of Codex", () => {
  interface Entry {
    slug: string;
    display_name: string;
    visibility: string;
    context_window: number;
    supported_reasoning_levels: { effort: string; description: string }[];
  }
  /** Codex takes no list in which one entry lacks one of these (`codex debug models`, 0.169). */
  const required = [
    ...["slug", "display_name", "supported_reasoning_levels", "shell_type", "visibility", "supported_in_api"],
    ...["priority", "base_instructions", "support_verbosity", "truncation_policy", "experimental_supported_tools"],
  ];

  test("has every chat model in its form, by what each can do", async () => {
    const answer = await fetch(`${newest.url}/v1/models?client_version=0.169.0`);
    const { models } = (await answer.json()) as { models: Entry[] };
    for (const model of models) expect(Object.keys(model)).toEqual(expect.arrayContaining(required));
    const { data } = (await (await fetch(`${newest.url}/v1/models`)).json()) as {
      data: { id: string; kind: string }[];
    };
    const chats = data.filter(({ kind }) => kind === "chat").map(({ id }) => id);
    expect(models.map(({ slug }) => slug)).toEqual([...chats, "codex-auto-review"]);
    expect(models.find(({ slug }) => slug === "gpt-6.1-terra")).toMatchObject({
      ...{
        display_name: "GPT-6.1 Terra",
        visibility: "list",
        context_window: 272_000,
        default_reasoning_level: "medium",
      },
      ...{ description: "100/500 credits per M in/out · 272K prompt", apply_patch_tool_type: "freeform" },
    });
    const efforts = (id: string) =>
      models.find(({ slug }) => slug === id)!.supported_reasoning_levels.map(({ effort }) => effort);
    expect(efforts("gpt-6.1-terra")).toEqual(["none", "low", "medium", "high", "xhigh", "max"]);
    expect(efforts("claude-haiku-4.5")).toEqual(["low", "medium", "high"]);
    expect(models.find(({ slug }) => slug === "claude-haiku-4.5")).not.toHaveProperty("apply_patch_tool_type");
  });

  test("has a hidden reviewer of approvals, which the cheapest small model is", async () => {
    const answer = await fetch(`${newest.url}/v1/models?client_version=0.169.0`);
    const { models } = (await answer.json()) as { models: Entry[] };
    expect(models.at(-1)).toMatchObject({ display_name: "Approval review by mai-code-2-flash", visibility: "hide" });
    const ask = { model: "codex-auto-review", input: "Hello" };
    expect((await newest.post("/v1/responses", ask)).status).toBe(200);
    expect(newest.rows()[0]).toMatchObject({ client_model: "codex-auto-review", upstream_model: "mai-code-2-flash" });
    expect(
      (
        await newest.post("/v1/chat/completions", {
          model: "codex-auto-review",
          messages: [{ role: "user", content: "Hi" }],
        })
      ).status,
    ).toBe(404);
  });
});

/** opencode's request for a title, for a model whose output limit its config does not tell: half of 0, less 1. */
const title = (model: string) => ({
  model,
  max_tokens: 31_999,
  thinking: { type: "enabled", budget_tokens: -1 },
  system: [{ type: "text", text: "You are a title generator.", cache_control: { type: "ephemeral" } }],
  messages: [{ role: "user", content: [{ type: "text", text: "Generate a title for this conversation:\n" }] }],
  stream: true,
});

for (const [model, upstream, thinking] of [
  ["claude-sonnet-4.5", "messages", { thinking: { type: "enabled", budget_tokens: 1024 } }],
  ["gpt-5.3-codex", "responses", { reasoning: { effort: "low", summary: "auto" } }],
  ["gemini-3.1-pro-preview", "chat", { thinking_budget: 1024 }],
] as const)
  test(`a thinking budget below 0 means the least there is: ${model}`, async () => {
    const answer = await proxy.post("/v1/messages", title(model));
    expect(await answer.text()).toContain("message_stop");
    expect(proxy.rows()[0]).toMatchObject({ http_status: 200, upstream_dialect: upstream });
    expect(proxy.demo.journal.at(-1)?.body).toMatchObject(thinking);
  });

test("a client that leaves while the model is silent is no failure of ours", async () => {
  const before = proxy.rows().length;
  const controller = new AbortController();
  const answer = proxy.post(
    "/v1/messages?beta=true",
    {
      model: "claude-sonnet-4.6",
      max_tokens: 32_000,
      stream: true,
      messages: [{ role: "user", content: "[demo: slow-headers 20] Hello" }],
    },
    { signal: controller.signal },
  );
  await until(() => proxy.demo.open === 1, "the upstream is asked");
  controller.abort();
  expect(await answer.catch((error: Error) => error.name)).toBe("AbortError");
  await until(() => proxy.rows().length === before + 1, "the row is written");
  const [row] = proxy.rows();
  expect(row).toMatchObject({ http_status: 499, error_type: "client_closed" });
  expect(JSON.parse(row!.attempts)).toMatchObject([{ error: "client_closed" }]);
  await until(() => proxy.lines.some((line) => line.includes("hung up")), "it is in the log");
  expect(proxy.lines.filter((line) => /error/.test(line))).toEqual([]);
  expect(proxy.lines.filter((line) => /hung up/.test(line))).toHaveLength(1);
});
