import { describe, expect, test } from "bun:test";
import { readModel } from "../../src/upstream/model";
import { costOf } from "../../src/upstream/price";

const chat = { id: "m", capabilities: { type: "chat" } };

describe("a listed model", () => {
  test("with nothing but an id is a chat model of unknown limits", () => {
    expect(readModel({ id: "m" })).toMatchObject({
      id: "m",
      name: "m",
      vendor: "unknown",
      kind: "chat",
      dialects: ["chat"],
      enabled: true,
      limits: { context: undefined },
      price: { premium: false },
    });
  });

  test.each([[null], [{}], [{ id: 5 }], [{ id: "" }], [{ id: "x".repeat(300) }], ["m"]])(
    "that has no usable id is none: %j",
    (item) => {
      expect(readModel(item)).toBeUndefined();
    },
  );

  test("is enabled unless its terms say otherwise", () => {
    const state = (policy: unknown) => readModel({ ...chat, policy })?.enabled;
    expect([
      state(undefined),
      state({ state: "enabled" }),
      state({ state: "disabled" }),
      state({ state: "unconfigured" }),
    ]).toEqual([true, true, false, false]);
  });

  test("is reached where it says, and an embeddings model by no conversation", () => {
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

describe("premium or free, in both generations of billing", () => {
  const price = (billing: unknown) => readModel({ ...chat, billing })!.price;
  test.each([
    [{ is_premium: true, multiplier: 3 }, true, 3],
    [{ is_premium: true, multiplier: 0.33 }, true, 0.33],
    [{ is_premium: true }, true, 1],
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
    [{ token_prices: {} }, false, 0],
    [undefined, false, undefined],
  ])("%j", (billing, premium, units) => {
    expect(price(billing)).toMatchObject({ premium });
    expect(price(billing).units).toBe(units);
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
      nanoCredits: 5,
      premiumUnits: null,
    });
  });

  test("else tokens at the catalogue's prices: plain, cached, written, output", () => {
    expect(
      costOf(sonnet, { input: 1_000_000 / 10, cachedInput: 50_000, cacheWrite: 10_000, output: 1000 }, true)
        .nanoCredits,
    ).toBe(Math.round(((40_000 * 300 + 50_000 * 30 + 10_000 * 375 + 1000 * 1500) / 1e6) * 1e9));
  });

  test("at the higher price of a long prompt", () => {
    expect(costOf(sonnet, { input: 300_000, output: 0 }, true).nanoCredits).toBe(((300_000 * 600) / 1e6) * 1e9);
  });

  test("is unknown when a number is, never 0", () => {
    expect(costOf(sonnet, { input: 5 }, true).nanoCredits).toBeNull();
    expect(costOf({ premium: true, units: 1 }, { input: 5, output: 5 }, true)).toEqual({
      nanoCredits: null,
      premiumUnits: 1,
    });
  });

  test("in premium units only for a person's turn", () => {
    expect(costOf({ premium: true, units: 3 }, {}, false).premiumUnits).toBe(0);
  });
});
