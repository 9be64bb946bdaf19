/** What the model list says of prices, in each generation of billing, and what a prompt costs by it. */

import type { Model } from "./model";
import type { DemoState } from "./state";
import type { Json } from "./wire";

/**
 * Generation A counts premium units, the others price tokens; neither has the members of the other. `mixed` is B with the
 * first member renamed; C has all new names, and the prices of some models (`texts`) as texts.
 */
export function billing(demo: DemoState, model: Model, restricted_to: string[] | undefined): Json {
  const { generation } = demo;
  if (generation === "A")
    return { is_premium: model.units > 0, multiplier: model.units, ...(restricted_to && { restricted_to }) };
  const long = longPrices(model);
  const isTiered = generation !== "C" || model.traits.has("long");
  const boundary = generation === "C" ? "max_prompt_tokens" : "context_max";
  const discount = Number(model.traits.get("promo"));
  return {
    ...(restricted_to && { restricted_to: [...restricted_to, "max"] }),
    ...(generation === "C" && model.prices.input > 0 && { auto_discount: 10 }),
    ...(discount > 0 && {
      promo: {
        id: `demo-${model.id}`,
        discount_percent: discount,
        ends_at: new Date(demo.now() + 14 * 86_400_000).toISOString(),
        message: `${model.name} costs ${discount} % less. DEMO.`,
        show_banner: true,
      },
    }),
    token_prices: {
      batch_size: model.prices.input ? 1_000_000 : 0,
      default: { ...tier(demo, model, model.prices), ...(long && isTiered && { [boundary]: long.above }) },
      ...(long && isTiered && { long_context: { ...tier(demo, model, long), [boundary]: model.limits?.prompt } }),
    },
  };
}

function tier(
  { generation }: DemoState,
  { traits, family }: Model,
  { input, output, cacheRead, cacheWrite }: Model["prices"],
) {
  const write = (credits: number) => (traits.has("texts") ? credits.toFixed(4) : credits);
  return {
    [generation === "B" ? "cache_price" : "cache_read_price"]: write(cacheRead),
    ...(cacheWrite && { cache_write_price: write(cacheWrite) }),
    ...(cacheWrite && generation === "C" && family === "claude" && { cache_write_1h_price: write(input * 2) }),
    input_price: write(input),
    output_price: write(output),
  };
}

/**
 * What a model of a million tokens costs above a number of tokens of prompt: with `long=` double the input and half as
 * much again for the output, else the same.
 */
function longPrices({ limits, traits, prices }: Model): (Model["prices"] & { above: number }) | undefined {
  if ((limits?.context ?? 0) < 1_000_000) return undefined;
  const above = Number(traits.get("long"));
  if (!above) return { ...prices, above: 200_000 };
  const { input, output, cacheRead, cacheWrite } = prices;
  return {
    above,
    input: input * 2,
    output: output * 1.5,
    cacheRead: cacheRead * 2,
    ...(cacheWrite && { cacheWrite: cacheWrite * 2 }),
  };
}

/** A long prompt may cost more, from the boundary on (`long-at`) or above it. */
export function pricesOf(model: Model, input: number): Model["prices"] {
  const long = longPrices(model);
  return long && (input > long.above || (input === long.above && model.traits.has("long-at"))) ? long : model.prices;
}
