/**
 * The prices that answers state beside their charge, for models whose list states none. They are kept in memory, because a
 * row has the charge as one sum: which kind of token cost how much cannot be told from it.
 */
import { BoundedMap } from "../../../lib/bounded-map";
import { decimalIn, entryOf, isObject } from "../../../lib/json";
import type { Price, TokenPrice } from "./price-list";

const per = 1_000_000;
const maxModels = 500;

const kinds: Readonly<Record<string, keyof TokenPrice>> = {
  input: "input",
  output: "output",
  cache_read: "cachedInput",
  cache_write: "cacheWrite",
};

export class BilledPrices {
  readonly #known = new BoundedMap<string, Partial<TokenPrice>>(maxModels);

  /** @param answer A full reply, or an event of a stream. */
  learn(model: string, answer: Record<string, unknown>): void {
    // An answer names only the kinds of which it had tokens.
    const stated = pricesIn(answer);
    if (stated) this.#known.set(model, { ...this.#known.get(model), ...stated });
  }

  /** The price that the list states; else the one that answers stated, if that is known. */
  priceOf({ id, price }: { id: string; price: Price }): Price {
    const { input, output, cachedInput, cacheWrite } = this.#known.get(id) ?? {};
    if (price.tokens || input === undefined || output === undefined) return price;
    return { ...price, tokens: { per, input, output, cachedInput, cacheWrite, cacheWriteHour: undefined } };
  }
}

/** The charge stands beside the usage, which some events have inside the reply. */
function pricesIn(answer: Record<string, unknown>): Partial<TokenPrice> | undefined {
  const charge = [answer, answer.response, answer.message]
    .map((holder) => (isObject(holder) ? holder.copilot_usage : undefined))
    .find(isObject);
  if (!charge) return undefined;
  const details: unknown[] = Array.isArray(charge.token_details) ? charge.token_details : [];
  const prices: Partial<TokenPrice> = {};
  for (const { token_type, batch_size, cost_per_batch } of details.filter(isObject)) {
    const kind = typeof token_type === "string" ? entryOf(kinds, token_type) : undefined;
    const [size, cost] = [decimalIn(batch_size), decimalIn(cost_per_batch)];
    if (kind && size && cost !== undefined) prices[kind] = (cost * per) / size;
  }
  return prices;
}
