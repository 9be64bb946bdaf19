/** Rows: what is made of the models: Google's names, a limit of prompts, Auto's plan. What the list says of them: pairs.test.ts. */
import { describe, expect, test } from "bun:test";
import { turnPlanOf } from "../../../src/proxy/upstream/copilot/auto-answer";
import { googleAliases } from "../../../src/proxy/upstream/models/google-names";
import { readModel } from "../../../src/proxy/upstream/models/model";
import { promptLimitOf } from "../../../src/proxy/upstream/models/prompt-limit";

const chat = { id: "m", capabilities: { type: "chat" } };

const listed = (id: string, input: number, light = false) => ({
  ...readModel({ ...chat, id, model_picker_category: light ? "lightweight" : "powerful" })!,
  price: { premium: true, tokens: { ...anyPrice, input, per: 1_000_000 } },
});
const anyPrice = { input: 1, output: 10, cachedInput: undefined, cacheWrite: undefined, cacheWriteHour: undefined };
const stones = [
  listed("gemini-4-neon", 300),
  listed("gemini-4-carbon", 200),
  listed("gemini-4-hydrogen", 150, true),
  listed("gemini-3.8-flash", 75, true),
];
test.each([
  ["gemini-2.5-pro", stones, "gemini-4-carbon"],
  ["gemini-3.1-pro-preview", stones, "gemini-4-carbon"],
  ["gemini-2.5-flash", stones, "gemini-3.8-flash"],
  ["gemini-2.5-flash-lite", stones, "gemini-3.8-flash"],
  ["gemini-2.5-flash", stones.slice(0, 3), "gemini-4-hydrogen"],
  [
    "gemini-2.5-pro",
    [listed("gemini-3.1-pro-preview", 200), listed("gemini-3.8-flash", 75, true)],
    "gemini-3.1-pro-preview",
  ],
])("Google's names stand for the newest model of their line: %s: %#", (name, models, expected) => {
  expect(googleAliases(name, models)).toEqual({ [name]: expected });
});

test("Google's names stand for the newest model of their line: and for none where no account has one", () => {
  expect(googleAliases("gemini-2.5-pro", [listed("gpt-6-sol", 200)])).toEqual({});
  expect(googleAliases("gpt-6-pro", stones)).toEqual({});
});

describe("a dearer price for long prompts", () => {
  const priced = (input: number) =>
    readModel({
      ...chat,
      capabilities: { type: "chat", limits: { max_prompt_tokens: 900_000 } },
      billing: {
        token_prices: {
          batch_size: 1_000_000,
          default: { input_price: input, output_price: input * 5, max_prompt_tokens: 100_000 },
          long_context: { input_price: input * 5, output_price: input * 25 },
        },
      },
    })!;
  test("is a limit for prompts, but not where it is still that of a small model", () => {
    expect(promptLimitOf(priced(200), { maxPromptTokens: {} })).toBe(100_000);
    // Claude Haiku 5.5: 10 credits per million tokens, and 50 above 100,000.
    expect(promptLimitOf(priced(10), { maxPromptTokens: {} })).toBeUndefined();
    expect(promptLimitOf(priced(10), { maxPromptTokens: { m: 50_000 } })).toBe(50_000);
  });
});

// biome-ignore format: a table is read by its rows
test.each([
  [undefined, undefined],
  [{}, undefined],
  [{ state_token: "" }, undefined],
  [{ state_token: "a" }, { state: "a", skip: 0 }],
  [{ state_token: "a", skip_turns: 7 }, { state: "a", skip: 7 }],
  [{ state_token: "a", skip_turns: 8 }, undefined],
  [{ state_token: "a", skip_turns: -1 }, undefined],
])("Auto's plan for further turns is read, one that is odd as none: %j", (hydra_rl_multi_turn, plan) => {
  expect(turnPlanOf({ hydra_rl_multi_turn })).toEqual(plan);
});
