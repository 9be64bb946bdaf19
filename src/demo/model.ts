/** One model of the demo, as a row of its table says, and what it costs. */
import type { DemoState } from "./state";
import type { Json } from "./wire";

export type Endpoint = "/chat/completions" | "/responses" | "ws:/responses" | "/v1/messages" | "/v1/systemone";

export interface Model {
  id: string;
  name: string;
  vendor: string;
  /** The vendor, which decides its form on /chat/completions. */
  family: "gpt" | "claude" | "gemini";
  kind: "chat" | "completion" | "embeddings";
  /** The id in its answers. */
  answersAs: string;
  units: number;
  limits?: { context: number; prompt: number; output: number };
  /** As listed; if undefined, the list does not have the member. */
  endpoints?: Endpoint[];
  budget?: { min: number; max: number };
  efforts: string[];
  reasons: boolean;
  /** The traits of the row: words and `key=value`. */
  traits: Map<string, string>;
  /** Credits per million tokens. */
  prices: { input: number; output: number; cacheRead: number; cacheWrite?: number };
}

/** Generation A counts premium units, the others price tokens, those of some models (`texts`) as texts. */
export function billing({ generation, now }: DemoState, model: Model, restricted_to: string[] | undefined): Json {
  if (generation === "A")
    return { is_premium: model.units > 0, multiplier: model.units, ...(restricted_to && { restricted_to }) };
  const long = longPrices(model);
  const discount = Number(model.traits.get("promo"));
  return {
    ...(restricted_to && { restricted_to: [...restricted_to, "max"] }),
    ...(model.prices.input > 0 && { auto_discount: 10 }),
    ...(discount > 0 && {
      promo: {
        id: `demo-${model.id}`,
        discount_percent: discount,
        ends_at: new Date(now() + 14 * 86_400_000).toISOString(),
        message: `${model.name} costs ${discount}% less. DEMO.`,
        show_banner: true,
      },
    }),
    token_prices: {
      batch_size: model.prices.input ? 1_000_000 : 0,
      default: { ...tier(model, model.prices), ...(long && { max_prompt_tokens: long.above }) },
      ...(long && { long_context: { ...tier(model, long), max_prompt_tokens: model.limits?.prompt } }),
    },
  };
}

function tier({ traits, family }: Model, { input, output, cacheRead, cacheWrite }: Model["prices"]): Json {
  const write = (credits: number) => (traits.has("texts") ? credits.toFixed(4) : credits);
  return {
    cache_read_price: write(cacheRead),
    ...(cacheWrite && { cache_write_price: write(cacheWrite) }),
    ...(cacheWrite && family === "claude" && { cache_write_1h_price: write(input * 2) }),
    input_price: write(input),
    output_price: write(output),
  };
}

/** Above the prompt of `long=` tokens a model costs double the input and half as much again for the output, or `long-by=`. */
function longPrices({ traits, prices }: Model): (Model["prices"] & { above: number }) | undefined {
  const above = Number(traits.get("long"));
  const { input, output, cacheRead, cacheWrite } = prices;
  if (!above) return undefined;
  const [into = 2, outOf = 1.5] = traits.get("long-by")?.split("/").map(Number) ?? [];
  return {
    above,
    input: input * into,
    output: output * outOf,
    cacheRead: cacheRead * into,
    ...(cacheWrite && { cacheWrite: cacheWrite * into }),
  };
}

/** A long prompt may cost more, from the boundary on (`long-at`) or above it. */
export function pricesOf(model: Model, input: number): Model["prices"] {
  const long = longPrices(model);
  return long && (input > long.above || (input === long.above && model.traits.has("long-at"))) ? long : model.prices;
}
