/**
 * Scenario: the books of a session like Claude Code's: what dragoman writes down against what the upstream charges;
 * `fixtures/scenes/prices.txt` has prices that a list does not tell.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { drifted } from "../../support/drifted";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { testScenes } from "../../support/scenes";
import { until } from "../../support/until";

testScenes("prices");

/** Several turns of one conversation, each with the whole of what was before, as Claude Code sends them. */
function turns(model: string, start: number) {
  const mark = { cache_control: { type: "ephemeral" } };
  const system = [{ type: "text", text: "You are careful. ".repeat(start), ...mark }];
  const messages: object[] = [];
  return [1, 2, 3, 4].map((turn) => {
    const text = `Turn ${turn}. ${"Read this file again. ".repeat(400)}`;
    messages.push({ role: "user", content: [{ type: "text", text, ...mark }] });
    const body = { model, max_tokens: 1000, system, messages: structuredClone(messages) };
    messages.push({ role: "assistant", content: [{ type: "text", text: `Done ${turn}.` }] });
    return body;
  });
}

const sessions = [
  // Texts as prices, with the price of written tokens.
  { model: "claude-opus-5.5", start: 2_000, boundary: 0 },
  { model: "claude-sonnet-4.6", start: 2_000, boundary: 0 },
  // The long tier, through another dialect.
  { model: "gpt-6-sol", start: 80_000, boundary: 272_000 },
  { model: "grok-4.7", start: 60_000, boundary: 200_000 },
  { model: "gpt-6-luna", start: 80_000, boundary: 272_000 },
];

for (const stated of [true, false])
  describe(`the books of generation C, ${stated ? "with" : "without"} the upstream's own statement of the charge`, () => {
    let proxy: RunningProxy;
    beforeAll(async () => {
      const [octo] = demoAccounts();
      proxy = await startProxy({
        demo: {
          generation: "C",
          accounts: [{ ...octo!, plan: "individual_pro", quota: quotas.tokenBilling() }],
          change: stated ? undefined : drifted("no-cost"),
        },
        config: { maxPromptTokens: { "gpt-6-sol": 900_000, "gpt-6-luna": 900_000, "grok-4.7": 900_000 } },
      });
    });
    afterAll(() => proxy[Symbol.asyncDispose]());

    test.each(sessions)(
      "a session with $model costs what the account is charged, to the nano-credit",
      async ({ model, start, boundary }) => {
        const { premium } = proxy.demo.accounts[0]!.quota;
        const before = premium.creditsUsed ?? 0;
        const had = proxy.rows().length;
        for (const body of turns(model, start)) expect((await proxy.post("/v1/messages", body)).status).toBe(200);
        await until(() => proxy.rows().length === had + 4, "all four rows are written");
        const rows = proxy.rows().slice(0, 4);
        expect(rows.some(({ cached_tokens }) => (cached_tokens ?? 0) > 0)).toBe(true);
        expect(rows.every(({ input_tokens }) => (input_tokens ?? 0) > boundary)).toBe(true);
        const booked = rows.reduce((sum, { cost }) => sum + (cost ?? Number.NaN), 0);
        expect(booked).toBe(Math.round(((premium.creditsUsed ?? 0) - before) * 1e9));
      },
    );
  });
