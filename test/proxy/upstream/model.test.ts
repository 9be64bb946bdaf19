/** Rows: a model as the list describes it: its abilities, limits and prices. */
import { describe, expect, test } from "bun:test";
import { googleAliases } from "../../../src/proxy/upstream/models/google-names";
import { readModel } from "../../../src/proxy/upstream/models/model";
import { costOf } from "../../../src/proxy/upstream/models/price";
import { promptLimitOf } from "../../../src/proxy/upstream/models/prompt-limit";

const chat = { id: "m", capabilities: { type: "chat" } };

describe("a listed model", () => {
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
    "that has no usable id is none: %j",
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
});

test("a classifier with an endpoint of its own is no chat model", () => {
  const item = { ...chat, id: "microsoft-decision-1", supported_endpoints: ["/v1/systemone"] };
  expect(readModel(item)).toMatchObject({ kind: "decision", dialects: [] });
});

describe("Google's names stand for the newest model of their line", () => {
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
  ])("%s: %#", (name, models, expected) => {
    expect(googleAliases(name, models)).toEqual({ [name]: expected });
  });

  test("and for none where no account has one", () => {
    expect(googleAliases("gemini-2.5-pro", [listed("gpt-6-sol", 200)])).toEqual({});
    expect(googleAliases("gpt-6-pro", stones)).toEqual({});
  });
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

describe("what a model can do", () => {
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
  ])("is read from the name only where the list is silent: tools are searched for with %s: %p", (id, byName) => {
    expect(able(id, {}).supports.toolSearch).toBe(byName);
    for (const stated of [true, false]) expect(able(id, { tool_search: stated }).supports.toolSearch).toBe(stated);
  });

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
    "knows of %s whether it always thinks (%p), takes no forced call (%p), or takes one while it thinks (%p)",
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
  ])("thinks adaptively by the list's word %p: %p, and always: %p", (word, adapts, always) => {
    const { adaptiveThinking, alwaysThinks } = able("claude-opus-5.5", { adaptive_thinking: word }).supports;
    expect([adaptiveThinking, alwaysThinks]).toEqual([adapts, always]);
    expect(able("claude-next", { adaptive_thinking: word }).supports.alwaysThinks).toBe(word === "adaptive_only");
  });

  test("is unknown of context editing unless the list states it", () => {
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
  ])("has max_completion_tokens with %s: %p", (id, expected) => {
    expect(able(id, {}).supports.completionTokens).toBe(expected);
  });

  test("is for small tasks by its category, and by its name only without one", () => {
    expect([
      able("gpt-6-luna", {}).light,
      able("gpt-6-luna", {}, { model_picker_category: "powerful" }).light,
      able("gpt-6-sol", {}).light,
      able("gemini-3.1-pro-preview", {}).light,
      able("gpt-6-sol", {}, { model_picker_price_category: "low" }).light,
      able("gpt-6.1-terra", {}, { model_picker_category: "versatile", model_picker_price_category: "low" }).light,
    ]).toEqual([true, false, false, false, true, false]);
  });
});

describe("a model is free only where the list says so", () => {
  const price = (billing: unknown) => readModel({ ...chat, billing })!.price;
  test.each([
    [{ is_premium: true, multiplier: 3 }, true, 3],
    [{ is_premium: true, multiplier: 0.33 }, true, 0.33],
    [{ is_premium: true }, true, undefined],
    [{ is_premium: false, multiplier: 0 }, false, 0],
    [
      { token_prices: { batch_size: 0, default: { input_price: 0, output_price: 0, cache_price: 0 } } },
      false,
      undefined,
    ],
    [
      { token_prices: { batch_size: 1_000_000, default: { input_price: 25, output_price: 200, cache_price: 2 } } },
      true,
      undefined,
    ],
    [{ token_prices: { batch_size: 0, default: { input_price: 5, output_price: 5 } } }, false, undefined],
    [{ token_prices: { default: { input_price: "0.00", output_price: "0" } } }, true, undefined],
    [
      { token_prices: { batch_size: "1000000", default: { input_price: "0.00", output_price: "0" } } },
      false,
      undefined,
    ],
    [{ token_prices: { default: { input_price: "2.5", output_price: "15.0" } } }, true, undefined],
    [{ token_prices: { default: { input_price: "free", output_price: "free" } } }, true, undefined],
    [{ token_prices: {} }, true, undefined],
    [{}, true, undefined],
    [undefined, true, undefined],
  ])("a model is free only where the list says so: %j", (billing, premium, units) => {
    expect(price(billing)).toMatchObject({ premium });
    expect(price(billing).units).toBe(units);
  });
});

describe("the prices of a list", () => {
  const prices = (token_prices: unknown, id = "m") =>
    readModel({ ...chat, id, billing: { token_prices: { batch_size: 1_000_000, ...Object(token_prices) } } })!.price;
  const [base, long] = [
    { input_price: 300, output_price: 1500 },
    { input_price: 600, output_price: 2250 },
  ];

  test.each([["cache_price"], ["cache_read_price"]])("state what cached tokens cost as %s", (name) => {
    expect(prices({ default: { ...base, [name]: 30 } }).tokens?.cachedInput).toBe(30);
  });

  test("the prices of a list may be texts, with the boundary and the size of a batch too", () => {
    const text = {
      batch_size: "1000",
      default: { input_price: "0.0125", output_price: "1e1", cache_read_price: "0.00125", cache_write_1h_price: "2" },
    };
    expect(prices(text).tokens).toEqual({
      per: 1000,
      input: 0.0125,
      output: 10,
      cachedInput: 0.00125,
      cacheWrite: undefined,
      cacheWriteHour: 2,
    });
  });

  test.each([["context_max"], ["max_prompt_tokens"]])("of long prompts begin above %s, of Grok with it", (name) => {
    const tiers = { default: { ...base, [name]: 200_000 }, long_context: { ...long, [name]: 872_000 } };
    expect(prices(tiers).long?.above).toBe(200_000);
    expect(prices(tiers, "grok-4.7").long?.above).toBe(199_999);
    const cost = (id: string) => costOf(prices(tiers, id), { input: 200_000, output: 0 }, true).amount;
    expect([cost("m"), cost("grok-4.7")]).toEqual([60e9, 120e9]);
  });

  test("of long prompts without a boundary are taken for all prompts, kind by kind the dearer one", () => {
    const tiers = {
      default: { ...base, cache_read_price: 30, cache_write_price: 375 },
      long_context: { input_price: 600, output_price: 1000, cache_read_price: 60 },
    };
    expect(prices(tiers)).toMatchObject({
      tokens: { input: 600, output: 1500, cachedInput: 60, cacheWrite: undefined },
      isBoundaryUnknown: true,
    });
    expect(prices(tiers).long).toBeUndefined();
    expect(prices({ default: base, long_context: base }).isBoundaryUnknown).toBeUndefined();
  });

  test.each([
    [{ default: { input_price: -1, output_price: 5 } }],
    [{ default: { input_price: "12,5", output_price: "5" } }],
    [{ default: { input_price: 5 } }],
    [{ default: base, long_context: { tokens: 5 } }],
  ])("that cannot be read are unknown, and so is the cost: %j", (token_prices) => {
    expect(costOf(prices(token_prices), { input: 5, output: 5 }, true).amount).toBeNull();
  });

  test("that do not state a kind leave the cost of such tokens unknown, neither zero nor the full price", () => {
    const { amount } = costOf(prices({ default: base }), { input: 100, cachedInput: 50, output: 5 }, true);
    expect(amount).toBeNull();
    expect(costOf(prices({ default: base }), { input: 100, cachedInput: 0, output: 0 }, true).amount).toBe(30e6);
  });

  test("the prices of a list may come with a promotion", () => {
    const promo = {
      id: "p",
      discount_percent: 50,
      ends_at: "2026-12-01T00:00:00Z",
      message: "Half.",
      show_banner: true,
    };
    expect(readModel({ ...chat, billing: { promo } })?.price.promotion).toEqual({
      discount: 50,
      endsAt: Date.parse("2026-12-01T00:00:00Z"),
      message: "Half.",
    });
  });
});

describe("what an exchange cost", () => {
  const sonnet = readModel({
    ...chat,
    billing: {
      token_prices: {
        batch_size: 1_000_000,
        default: {
          input_price: 300,
          output_price: 1500,
          cache_price: 30,
          cache_write_price: 375,
          context_max: 200_000,
        },
        long_context: { input_price: 600, output_price: 2250, cache_price: 60 },
      },
    },
  })!.price;

  test("is what the upstream says it charged", () => {
    expect(costOf(sonnet, { nanoCredits: 5, input: 1000, output: 10 }, true)).toEqual({
      unit: "credits",
      amount: 5,
    });
  });

  test("else tokens at the catalogue's prices: plain, cached, written, output", () => {
    expect(
      costOf(sonnet, { input: 1_000_000 / 10, cachedInput: 50_000, cacheWrite: 10_000, output: 1000 }, true).amount,
    ).toBe(Math.round(((40_000 * 300 + 50_000 * 30 + 10_000 * 375 + 1000 * 1500) / 1e6) * 1e9));
  });

  test("an exchange costs the higher price of a long prompt", () => {
    expect(costOf(sonnet, { input: 300_000, output: 0 }, true).amount).toBe(((300_000 * 600) / 1e6) * 1e9);
  });

  test("is unknown when a number is, never 0", () => {
    expect(costOf(sonnet, { input: 5 }, true).amount).toBeNull();
  });

  test("an exchange costs premium requests only for a person's turn", () => {
    const price = { premium: true, units: 0.33 };
    expect(costOf(price, {}, true)).toEqual({ unit: "premium", amount: 0.33e9 });
    expect(costOf(price, {}, false)).toEqual({ unit: "premium", amount: 0 });
  });

  test("is in what the plan is counted in, whatever else is known", () => {
    const units = { premium: true, units: 1 };
    const both = { ...sonnet, units: 3 };
    const usage = { input: 1_000, output: 0 };
    const charged = { ...usage, nanoCredits: 7 };
    const premium = { planUnit: "premium" };
    expect(costOf(both, charged, true, premium)).toEqual({ unit: "premium", amount: 3e9 });
    expect(costOf(sonnet, charged, true, premium)).toEqual({ unit: "premium", amount: null });
    expect(costOf(units, usage, true, { planUnit: "credits" })).toEqual({ unit: "credits", amount: null });
    // Of a plan of which nothing is known, the price tells it: before a request as after it. All answers state a charge.
    for (const planUnit of [undefined, "unknown", "chat"]) {
      expect(costOf(both, usage, true, { planUnit })).toEqual({ unit: "credits", amount: 0.3e9 });
      expect(costOf(units, usage, true, { planUnit })).toEqual({ unit: "premium", amount: 1e9 });
      expect(costOf(units, charged, true, { planUnit })).toEqual({ unit: "premium", amount: 1e9 });
      expect(costOf({ premium: false, units: 0 }, charged, true, { planUnit })).toEqual({ unit: "credits", amount: 7 });
    }
  });
});
