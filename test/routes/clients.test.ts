/** Rows: what Claude Code, Codex and opencode send and meet, shortened. */
import { afterAll, describe, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";
import { testScenes } from "../support/scenes";

testScenes("clients");

const newest = await startProxy({ demo: { generation: "C" } });
afterAll(() => newest[Symbol.asyncDispose]());

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
