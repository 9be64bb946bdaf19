/** Scenario: what Codex meets, shortened. */
import { describe, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";

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

describe("its model list", () => {
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
    await using proxy = await startProxy({ demo: { generation: "C" } });
    const answer = await fetch(`${proxy.url}/v1/models?client_version=0.169.0`);
    const { models } = (await answer.json()) as { models: Entry[] };
    for (const model of models) expect(Object.keys(model)).toEqual(expect.arrayContaining(required));
    const { data } = (await (await fetch(`${proxy.url}/v1/models`)).json()) as { data: { id: string; kind: string }[] };
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
    await using proxy = await startProxy({ demo: { generation: "C" } });
    const answer = await fetch(`${proxy.url}/v1/models?client_version=0.169.0`);
    const { models } = (await answer.json()) as { models: Entry[] };
    expect(models.at(-1)).toMatchObject({ display_name: "Approval review by mai-code-2-flash", visibility: "hide" });
    const ask = { model: "codex-auto-review", input: "Hello" };
    expect((await proxy.post("/v1/responses", ask)).status).toBe(200);
    expect(proxy.rows()[0]).toMatchObject({ client_model: "codex-auto-review", upstream_model: "mai-code-2-flash" });
    expect(
      (
        await proxy.post("/v1/chat/completions", {
          model: "codex-auto-review",
          messages: [{ role: "user", content: "Hi" }],
        })
      ).status,
    ).toBe(404);
  });
});
