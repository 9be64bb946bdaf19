/** Scenario: what Claude Code sends, shortened. */
import { expect, test } from "bun:test";
import { startProxy } from "../support/proxy";

/** Its first request, with an id as Anthropic spells it. */
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
    await using proxy = await startProxy();
    const answer = await proxy.post("/v1/messages?beta=true", first("claude-sonnet-4-6", stream));
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('"model":"claude-sonnet-4-6"');
    expect(proxy.demo.journal.at(-1)?.body).toMatchObject({ model: "claude-sonnet-4.6" });
    expect(JSON.parse(proxy.rows()[0]!.fixups)).toContain("model-name");
  });

test("a base URL that ends in /v1 is as good as one that does not", async () => {
  await using proxy = await startProxy();
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
    await using proxy = await startProxy();
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

test("its list has every chat model of the picker under an id that it takes, says what each costs, and each id is served", async () => {
  await using proxy = await startProxy({ demo: { generation: "C" } });
  const asked = {
    headers: { "user-agent": "claude-code/2.1.330", authorization: "Bearer unused", "x-api-key": "unused" },
  };
  const list = async (init?: RequestInit) =>
    (
      (await (await fetch(`${proxy.url}/v1/models?limit=1000`, init)).json()) as {
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
    const answer = await proxy.post("/v1/messages?beta=true", first(id, false));
    expect([id, answer.status]).toEqual([id, 200]);
  }
  expect(proxy.rows().map(({ upstream_model }) => upstream_model)).toEqual([
    "gemini-3.8-flash",
    "gpt-6.1-sol",
    "claude-opus-5.5",
  ]);
  expect((await list()).map(({ id }) => id)).toContain("gpt-6.1-sol");
});
