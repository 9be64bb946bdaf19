/** Scenario: what opencode sends, shortened. */
import { expect, test } from "bun:test";
import { startProxy } from "../support/proxy";

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
    await using proxy = await startProxy();
    const answer = await proxy.post("/v1/messages", title(model));
    expect(await answer.text()).toContain("message_stop");
    expect(proxy.rows()[0]).toMatchObject({ http_status: 200, upstream_dialect: upstream });
    expect(proxy.demo.journal.at(-1)?.body).toMatchObject(thinking);
  });
