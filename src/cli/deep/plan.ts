/** Which endpoints `dragoman doctor --deep` asks, with which models, and what that costs. */

import { type Dialect, dialects } from "../../dialects/hub/conversation";
import { embeddingsPaths, upstreamPaths } from "../../lib/api-paths";
import { type Costs, costInWords, costsOf } from "../../lib/money";
import type { Model } from "../../proxy/upstream/models/model";
import { costOf } from "../../proxy/upstream/models/price";

export interface PlannedCall {
  /** Null for embeddings. */
  dialect: Dialect | null;
  /** The upstream's path. */
  path: string;
  model: Model;
  /** An upper bound. */
  cost: Costs;
}

/** The prompt and its answer are shorter. */
export const tokensAtMost = { input: 100, output: 256 };

/** One call for each endpoint that a model offers, with the cheapest of its models. */
export function planCalls(models: readonly Model[]): PlannedCall[] {
  const usable = models.filter(({ enabled }) => enabled);
  const call = (dialect: Dialect | null, path: string, offered: Model[]): PlannedCall[] => {
    const model = cheapest(offered);
    return model ? [{ dialect, path, model, cost: costOfCalls(model, 1, tokensAtMost) }] : [];
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

/** A price that is not known comes last. */
const expense = ({ price }: Model): number => costOf(price, tokensAtMost, true).amount ?? Number.MAX_SAFE_INTEGER;

/** What so many calls cost a person. @param tokens Of each. */
export function costOfCalls({ price }: Model, calls: number, tokens: { input: number; output: number }): Costs {
  const { unit, amount } = costOf(price, tokens, true);
  return costsOf({ cost: amount === null ? null : amount * calls, cost_unit: unit, cost_at_least: false });
}

/** `nothing`, `at most 0.05 AI credits`, `at most 0.33 premium requests and an unknown amount`. */
export function upTo({ cost, cost_at_least }: Costs): string {
  const known = costInWords({ cost, cost_at_least: false });
  const parts = [known === "nothing" ? "" : `at most ${known}`, cost_at_least ? "an unknown amount" : ""];
  return parts.filter(Boolean).join(" and ") || "nothing";
}
