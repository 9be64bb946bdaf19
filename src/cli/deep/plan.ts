/** Which endpoints `dragoman doctor --deep` asks, with which models, and what that costs. */
import { embeddingsPaths, upstreamPaths } from "../../api-paths";
import { type Dialect, dialects } from "../../dialects/hub/conversation";
import { significant } from "../../format";
import type { Model } from "../../upstream/models/model";
import { type Cost, costOf } from "../../upstream/models/price";
import type { Price } from "../../upstream/models/price-list";

export interface PlannedCall {
  /** Null for embeddings. */
  dialect: Dialect | null;
  /** The upstream's path. */
  path: string;
  model: Model;
  /** An upper bound. */
  cost: Cost;
}

/** The prompt and its answer are shorter. */
export const tokensAtMost = { input: 100, output: 256 };

/** One call for each endpoint that a model offers, with the cheapest of its models. */
export function planCalls(models: readonly Model[]): PlannedCall[] {
  const usable = models.filter(({ enabled }) => enabled);
  const call = (dialect: Dialect | null, path: string, offered: Model[]): PlannedCall[] => {
    const model = cheapest(offered);
    return model ? [{ dialect, path, model, cost: costAtMost(model.price) }] : [];
  };
  return [
    ...dialects.flatMap((dialect) =>
      call(
        dialect,
        upstreamPaths[dialect],
        usable.filter((model) => model.dialects.includes(dialect)),
      ),
    ),
    ...call(
      null,
      embeddingsPaths.upstream,
      usable.filter(({ kind }) => kind === "embeddings"),
    ),
  ];
}

/** Free ones first; one of unknown price last. */
export const cheapest = (models: readonly Model[]): Model | undefined =>
  [...models].sort((one, other) => expense(one) - expense(other))[0];

const costAtMost = (price: Price): Cost => costOf(price, tokensAtMost, true);

/** For sorting: free models first, then by price; a price that is not known comes last. */
function expense({ price }: Model): number {
  const { nanoCredits, premiumUnits } = costAtMost(price);
  if (isFree({ nanoCredits, premiumUnits }, price)) return 0;
  return (premiumUnits ?? 0) * 1e12 + (nanoCredits ?? (premiumUnits === null ? Number.MAX_SAFE_INTEGER : 0));
}

const isFree = ({ nanoCredits, premiumUnits }: Cost, { premium }: Price): boolean =>
  !premium && (nanoCredits ?? 0) === 0 && (premiumUnits ?? 0) === 0;

/** `nothing`, `at most 0.05 credits`, `0.33 premium requests`. */
export function costInWords({ nanoCredits, premiumUnits }: Cost): string {
  const parts = [
    ...(nanoCredits ? [`at most ${significant(nanoCredits / 1e9)} credits`] : []),
    ...(premiumUnits ? [`${significant(premiumUnits)} premium ${premiumUnits === 1 ? "request" : "requests"}`] : []),
  ];
  return parts.length === 0 ? "nothing" : parts.join(" and ");
}

/** The cost of all calls. */
export const totalOf = (calls: readonly PlannedCall[]): Cost => ({
  nanoCredits: calls.reduce((sum, { cost }) => sum + (cost.nanoCredits ?? 0), 0),
  premiumUnits: calls.reduce((sum, { cost }) => sum + (cost.premiumUnits ?? 0), 0),
});
