/**
 * Rows: tools that a system message within a conversation announces count as part of the prompt, and an effort there
 * goes with the request where its beta was refused; `fixtures/scenes/bodies.txt` has what is sent.
 */
import { afterAll, expect, test } from "bun:test";
import { codecs } from "../../../src/dialects/codecs";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { ableModel } from "../../support/facts";
import type { Json } from "../../support/json";
import { startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";

testScenes("bodies");

const proxy = await startProxy({ demo: { generation: "C" } });
afterAll(() => proxy[Symbol.asyncDispose]());

const user = { role: "user", content: "Hello" };

test.each(["claude-opus-5.5", "claude-sonnet-4.6", "claude-haiku-4.5", "gpt-6-sol", exampleModels.gemini])(
  "tools announced to %s count as part of the prompt, and those that wait do not",
  async (model) => {
    const count = async (...announced: string[]) => {
      const content = announced.map((name) => ({ type: "tool_addition", tool: { type: "tool_reference", name } }));
      const messages = [
        user,
        { role: "system", content: "Hi." },
        ...(content.length > 0 ? [{ role: "system", content }] : []),
      ];
      const response = await proxy.post("/v1/messages/count_tokens", { model, tools, messages });
      return ((await response.json()) as Json).input_tokens as number;
    };
    const waits = { defer_loading: true, description: "Many words about what it does. ".repeat(200) };
    const tools = [
      { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" },
      ...["look", "dig", "fly"].map((name, at) => ({ name, input_schema: { type: "object" }, ...(at > 0 && waits) })),
    ];
    const [waiting, one, both] = [await count(), await count("dig"), await count("dig", "fly")];
    expect(waiting).toBeLessThan(600);
    expect(one - waiting).toBeGreaterThan(900);
    expect((both - waiting) / (one - waiting)).toBeWithin(1.8, 2.6);
  },
);

test("an effort within the conversation goes with the request where the beta for it was refused", () => {
  const facts = ableModel("claude-opus-5.5", "Anthropic");
  const able = { ...facts, supports: { ...facts.supports, systemTurns: true, turnEfforts: true } };
  const effort = { role: "system", content: [], output_config: { effort: "low" } };
  const body = { model: "claude-opus-5.5", max_tokens: 9, messages: [user, effort] };
  const refusedBetas = ["per-turn-control-2026-07-01"];
  const sent = codecs.messages.fixRequest(body, able, { webSearch: false, refusedBetas });
  expect([sent.messages, sent.output_config]).toEqual([[user], { effort: "low" }]);
});
