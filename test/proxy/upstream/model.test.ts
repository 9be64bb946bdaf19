/** Rows: a model as the list describes it: its abilities, limits and prices. */
import { describe, expect, test } from "bun:test";
import { turnPlanOf } from "../../../src/proxy/upstream/copilot/auto-answer";
import { googleAliases } from "../../../src/proxy/upstream/models/google-names";
import { readModel } from "../../../src/proxy/upstream/models/model";
import { promptLimitOf } from "../../../src/proxy/upstream/models/prompt-limit";

const chat = { id: "m", capabilities: { type: "chat" } };

test("a listed model with nothing but an id is a chat model of unknown limits", () => {
  expect(readModel({ id: "m" })).toMatchObject({
    id: "m",
    name: "m",
    vendor: "unknown",
    kind: "chat",
    dialects: ["chat"],
    enabled: true,
    limits: { context: undefined },
    price: { premium: true },
  });
});

test.each([[null], [{}], [{ id: 5 }], [{ id: "" }], [{ id: "x".repeat(300) }], ["m"]])(
  "a listed model that has no usable id is none: %j",
  (item) => {
    expect(readModel(item)).toBeUndefined();
  },
);

test("a listed model is enabled unless its terms say otherwise", () => {
  const state = (policy: unknown) => readModel({ ...chat, policy })?.enabled;
  expect([
    state(undefined),
    state({ state: "enabled" }),
    state({ state: "disabled" }),
    state({ state: "unconfigured" }),
  ]).toEqual([true, true, false, false]);
});

test("a listed model is reached where it says, and an embeddings model by no conversation", () => {
  expect(
    readModel({ ...chat, supported_endpoints: ["/responses", "ws:/responses", "/new", "constructor"] })?.dialects,
  ).toEqual(["responses"]);
  expect(readModel({ id: "e", capabilities: { type: "embeddings", limits: { max_inputs: 512 } } })).toMatchObject({
    kind: "embeddings",
    dialects: [],
    limits: { inputs: 512 },
  });
});

test("a classifier with an endpoint of its own is no chat model", () => {
  const item = { ...chat, id: "microsoft-decision-1", supported_endpoints: ["/v1/systemone"] };
  expect(readModel(item)).toMatchObject({ kind: "decision", dialects: [] });
});

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

const able = (id: string, supports: object, more: object = {}) =>
  readModel({ id, capabilities: { type: "chat", supports }, ...more })!;

test.each([
  ["claude-sonnet-4.6", true],
  ["claude-opus-5.5", true],
  ["claude-haiku-4.5", false],
  ["gpt-5.4", true],
  ["gpt-6-sol", true],
  ["gpt-5.4-mini", false],
  ["gpt-6-luna", false],
  ["gpt-5.3-codex", false],
  ["grok-4.7", false],
])(
  "what a model can do is read from the name only where the list is silent: tools are searched for with %s: %p",
  (id, byName) => {
    expect(able(id, {}).supports.toolSearch).toBe(byName);
    for (const stated of [true, false]) expect(able(id, { tool_search: stated }).supports.toolSearch).toBe(stated);
  },
);

test.each([
  ["claude-fable-5", true, false, true],
  ["claude-fable-5.1", true, true, false],
  ["claude-mythos-5", true, true, false],
  ["claude-opus-4.8", false, false, true],
  ["claude-opus-5", false, false, true],
  ["claude-opus-5.5", true, true, false],
  ["claude-opus-6", true, true, false],
  ["claude-sonnet-5", false, false, true],
  ["claude-sonnet-5.5", false, true, false],
  ["claude-haiku-5.5", false, false, false],
  ["claude-sonnet-4.6", false, false, false],
  ["gpt-6-sol", false, false, false],
])(
  "it is known of %s whether it always thinks (%p), takes no forced call (%p), or takes one while it thinks (%p)",
  (id, always, unforced, both) => {
    const { alwaysThinks, noForcedCalls, forcedCallsThink } = able(id, {}).supports;
    expect([alwaysThinks, noForcedCalls, forcedCallsThink]).toEqual([always, unforced, both]);
  },
);

test.each([
  [true, true, true],
  [false, false, false],
  ["adaptive_only", true, true],
  ["supported", true, false],
  ["unsupported", false, false],
  [undefined, false, true],
])("a model thinks adaptively by the list's word %p: %p, and always: %p", (word, adapts, always) => {
  const { adaptiveThinking, alwaysThinks } = able("claude-opus-5.5", { adaptive_thinking: word }).supports;
  expect([adaptiveThinking, alwaysThinks]).toEqual([adapts, always]);
  expect(able("claude-next", { adaptive_thinking: word }).supports.alwaysThinks).toBe(word === "adaptive_only");
});

test("whether a model edits contexts is unknown unless the list states it", () => {
  expect(able("claude-opus-5.5", {}).supports.contextEditing).toBeUndefined();
  expect(able("claude-opus-5.5", { context_editing: false }).supports.contextEditing).toBe(false);
});

test.each([
  ["gpt-5-mini", true],
  ["gpt-6-sol", true],
  ["gpt-10", true],
  ["o3", true],
  ["gpt-4.1", false],
  ["claude-sonnet-4.6", false],
])("a request has max_completion_tokens with %s: %p", (id, expected) => {
  expect(able(id, {}).supports.completionTokens).toBe(expected);
});

test("a model is for small tasks by its category, and by its name only without one", () => {
  expect([
    able("gpt-6-luna", {}).light,
    able("gpt-6-luna", {}, { model_picker_category: "powerful" }).light,
    able("gpt-6-sol", {}).light,
    able("gemini-3.1-pro-preview", {}).light,
    able("gpt-6-sol", {}, { model_picker_price_category: "low" }).light,
    able("gpt-6.1-terra", {}, { model_picker_category: "versatile", model_picker_price_category: "low" }).light,
  ]).toEqual([true, false, false, false, true, false]);
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
