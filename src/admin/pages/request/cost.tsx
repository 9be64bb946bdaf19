/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The usage and cost of one request as the upstream reported them, beside the cost by the list price of its model. */

import { formatAmount, formatCount, significant } from "../../../lib/format";
import { costsOf, costUnits, inDollars, marked } from "../../../lib/money";
import { withTimeLimit } from "../../../lib/net/time-limit";
import type { Scope } from "../../../parts/app";
import { missSentence } from "../../api/cache-savings";
import { type ModelItem, modelItems, showTokenPrice } from "../../api/models";
import type { ShownEntry } from "../../api/requests";
import { Count, Sentence, Unknown } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Head } from "../../ui/lists";
import { LostCost } from "../portions";

/** A model, with the price that its answers stated if the list has none. */
interface PricedModel extends ModelItem {
  isPriceFromAnswers: boolean;
}

/** The model with this ID. Undefined if the catalogue takes longer than a second: a page does not wait for the upstream. */
export async function modelWithin(app: Scope, id: string | null): Promise<PricedModel | undefined> {
  if (id === null) return undefined;
  const models = await withTimeLimit<ModelItem[], ModelItem[]>(
    modelItems(app).catch(() => []),
    1_000,
    () => [],
  );
  const model = models.find((each) => each.id === id);
  if (!model) return undefined;
  const { tokens } = model.price.tokens ? {} : app.billedPrices.priceOf({ id, price: { premium: true } });
  if (!tokens) return { ...model, isPriceFromAnswers: false };
  const price = { ...model.price, tokens: { per: tokens.per, ...showTokenPrice(tokens) } };
  return { ...model, price, isPriceFromAnswers: true };
}

interface Line {
  name: string;
  tokens: number | null;
  /** AI credits for a million tokens; null if the upstream does not state the price of this kind. */
  rate?: number | null;
}

type Rate = Record<"input" | "cached_input" | "cache_write" | "output", number | null>;

/** @param million By what the prices are multiplied to be those of a million tokens. */
function linesOf(item: ShownEntry, rate: Rate | undefined, million: number): Line[] {
  const { input_tokens, output_tokens } = item;
  // Where no model read anything, nothing was cached either.
  const nothing = input_tokens === 0 ? 0 : null;
  const [cached_tokens, cache_write_tokens] = [item.cached_tokens ?? nothing, item.cache_write_tokens ?? nothing];
  const fresh = input_tokens === null ? null : input_tokens - (cached_tokens ?? 0) - (cache_write_tokens ?? 0);
  const priceOf = (kind: keyof Rate) => {
    const price = rate?.[kind];
    return price == null ? price : price * million;
  };
  return [
    { name: "Input", tokens: fresh === null ? null : Math.max(0, fresh), rate: priceOf("input") },
    { name: "Cached input", tokens: cached_tokens, rate: priceOf("cached_input") },
    // Few upstreams count and price what is written.
    ...(!cache_write_tokens && !rate?.cache_write
      ? []
      : [{ name: "Cache writes", tokens: cache_write_tokens, rate: priceOf("cache_write") }]),
    { name: "Output", tokens: output_tokens, rate: priceOf("output") },
  ];
}

/** Null if the price of some of the tokens is not known. */
function nanoCreditsOf(lines: Line[]): number | null {
  if (lines.some(({ tokens, rate }) => tokens && rate == null)) return null;
  return Math.round(lines.reduce((total, { tokens, rate }) => total + ((tokens ?? 0) * (rate ?? 0)) / 1e6, 0) * 1e9);
}

interface CostProps {
  item: ShownEntry;
  /** As the catalogue lists it now; prices are not kept with the request. */
  model: PricedModel | undefined;
}

export function RequestCost({ item, model }: CostProps): Markup {
  const { input_tokens, output_tokens, cost } = item;
  if ([input_tokens, output_tokens, cost].every((reported) => reported === null))
    return <p class="soft">Unknown: the upstream reported neither tokens nor a cost.</p>;
  // A plan of premium requests bills no tokens.
  const priced = pricedOf(item, item.cost_unit === "premium" ? undefined : model?.price);
  return (
    <>
      <Bill item={item} priced={priced} />
      <Notes item={item} model={model} priced={priced} />
    </>
  );
}

type Priced = ReturnType<typeof pricedOf>;

/** What the tokens cost by the price of the model. */
function pricedOf(item: ShownEntry, price: PricedModel["price"] | undefined) {
  const { input_tokens } = item;
  const long = price?.long && input_tokens !== null && input_tokens > price.long.above ? price.long : undefined;
  const rate = price?.tokens ? (long ?? price.tokens) : undefined;
  const million = price?.tokens ? 1_000_000 / price.tokens.per : 1;
  const lines = linesOf(item, rate, million);
  const computed = nanoCreditsOf(lines);
  const base = long && price?.tokens ? nanoCreditsOf(linesOf(item, price.tokens, million)) : computed;
  /** What the long prompt costs beyond the base rate. */
  const extra = computed === null || base === null ? 0 : computed - base;
  return { rate, long, lines, computed, extra };
}

function Bill({ item, priced: { rate, lines } }: { item: ShownEntry; priced: Priced }): Markup {
  const { cost, cost_unit } = item;
  return (
    <table class="bill">
      <caption class="hidden">Tokens and what they cost</caption>
      <Head columns={["Tokens"]} numbers={["Count", ...(rate ? ["Credits per 1M tokens", "Credits"] : [])]} />
      <tbody>
        {lines.map(({ name, tokens, rate: perMillion }) => (
          <tr>
            <th scope="row">{name}</th>
            <td class="right">
              <Count of={tokens} />
            </td>
            {perMillion !== undefined && (
              <>
                <Amount of={perMillion === null ? null : significant(perMillion)} />
                <Amount
                  of={
                    tokens === 0
                      ? "0"
                      : tokens === null || perMillion === null
                        ? null
                        : significant((tokens * perMillion) / 1e6)
                  }
                />
              </>
            )}
          </tr>
        ))}
        {item.reasoning_tokens !== null && (
          <tr>
            <th scope="row">Reasoning, part of the output</th>
            <td class="right">
              <Count of={item.reasoning_tokens} />
            </td>
            {rate && <td colspan="2"></td>}
          </tr>
        )}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row" colspan={rate ? 3 : 1}>
            {cost_unit === null ? "Cost" : costUnits[cost_unit].label}
            {cost !== null && cost_unit === "credits" && <span class="soft"> {inDollars(costsOf(item))}</span>}
          </th>
          <Amount of={cost === null ? null : marked(formatAmount(cost), item)} />
        </tr>
      </tfoot>
    </table>
  );
}

const Amount = ({ of }: { of: string | null }) => <td class={["right", of !== null && "num"]}>{of ?? <Unknown />}</td>;

function Notes({ item, model, priced: { rate, long, computed, extra } }: CostProps & { priced: Priced }): Markup {
  const { cost, cost_unit } = item;
  const missed = missSentence(item);
  const differs =
    cost !== null &&
    !item.cost_at_least &&
    rate !== undefined &&
    computed !== null &&
    Math.abs(cost - computed) > Math.max(10, computed / 1_000);
  return (
    <>
      {model && !rate && cost_unit !== "premium" && (
        <p class="soft">
          {cost === null
            ? "The upstream lists no token price for this model."
            : "The upstream reported these credits with its response. It lists no token price for this model."}
        </p>
      )}
      {rate && model?.isPriceFromAnswers && (
        <p class="soft">
          The upstream lists no token price for this model. These are the prices that its answers stated last.
        </p>
      )}
      {long && (
        <p class="soft">
          Billed at the long-context rate: the prompt has more than {formatCount(long.above)} tokens.{" "}
          {extra > 0 && <>At the base rate it would have cost {formatAmount(extra)} credits less. </>}
          <code>maxPromptTokens</code> in the <a href="/admin/config">config</a> sets where prompts are refused.
        </p>
      )}
      {model?.price.boundary_unknown && cost_unit === "credits" && (
        <p class="soft">
          The upstream lists a dearer price for long prompts, but not from where on: these are the dearer prices.
        </p>
      )}
      {differs && (
        <p class="soft">
          The total is what the upstream reported. At{" "}
          {model?.isPriceFromAnswers ? "these prices" : "today’s list price"} it would be {formatAmount(computed)}{" "}
          credits.
        </p>
      )}
      {missed && (
        <p class="soft">
          {item.cached_tokens ? "Not all of the prompt was" : "The prompt was not"} found in the cache.{" "}
          <Sentence of={missed} />
          <LostCost of={item.cache_lost_cost} /> <a href="/admin/cache">More about the cache</a>
        </p>
      )}
      {item.cost_at_least && (
        <p class="soft">
          The cost is at least this: the upstream did not report all that is charged for
          {item.stop_reason === null && item.error_type !== null && ", as the response ended early"}.
        </p>
      )}
      {item.tokens_estimated && <p class="soft">Token counts are estimates: the upstream did not report them.</p>}
      {!model && item.upstream_model !== null && <p class="soft">The price of this model is currently unavailable.</p>}
    </>
  );
}
