/** Converts between effort values and budgets of thinking tokens. */
import { entryOf } from "../../lib/json";
import type { Reasoning } from "./conversation";
import type { ModelFacts } from "./model";

/** The effort values, weakest first, with the thinking tokens that each stands for. */
const budgets: Record<string, number> = {
  none: 0,
  minimal: 1024,
  low: 4000,
  medium: 8000,
  high: 16000,
  xhigh: 24000,
  max: 32000,
};

const scale = Object.keys(budgets);

/** The effort that stands for adaptive thinking where a budget is needed: the default of adaptive models. */
const adaptiveEffort = "high";

/**
 * The effort to send to this model: the requested one, or the one nearest to the requested budget. If the model does not
 * accept it, the nearest weaker one that it accepts, else its weakest. Undefined if nothing was requested or none fits.
 */
export function effortOf(reasoning: Reasoning | undefined, model: ModelFacts): string | undefined {
  const { efforts } = model.supports;
  const wanted = wantedEffort(reasoning);
  return wanted === undefined || efforts.includes(wanted) ? wanted : nearestEffort(wanted, efforts);
}

/**
 * The nearest weaker one of the efforts, else the weakest. Undefined if `wanted` is a word that is not known, or none is
 * another.
 * @param efforts Weakest first.
 */
export function nearestEffort(wanted: string, efforts: readonly string[]): string | undefined {
  if (!scale.includes(wanted)) return undefined;
  // A low effort must not become `none`.
  const weaker = efforts.filter((effort) => effort !== "none" && rank(effort) < rank(wanted));
  return weaker.at(-1) ?? efforts.find((effort) => rank(effort) > rank(wanted));
}

/**
 * The thinking budget to send to this model: the requested one, or the one that the effort stands for, within the model's
 * bounds and below `maxTokens`. Undefined if nothing was requested, thinking is disabled, the model has no budget, or
 * `maxTokens` is too small for the model's minimum.
 */
export function budgetOf(
  reasoning: Reasoning | undefined,
  model: ModelFacts,
  maxTokens: number | undefined,
): number | undefined {
  const bounds = model.supports.thinkingBudget;
  const wanted = wantedBudget(reasoning);
  if (!bounds || !wanted) return undefined;
  const room = Math.min(bounds.max, (maxTokens ?? Number.POSITIVE_INFINITY) - 1);
  return room < bounds.min ? undefined : Math.min(Math.max(wanted, bounds.min), room);
}

function wantedEffort(reasoning: Reasoning | undefined): string | undefined {
  if (reasoning?.disabled) return "none";
  if (reasoning?.effort !== undefined || reasoning?.budget === undefined) return reasoning?.effort;
  const { budget } = reasoning;
  // A budget never maps to more than `high`: some clients send 31,999 by default; `xhigh` and `max` are chosen on purpose.
  const candidates = scale.slice(scale.indexOf("minimal"), scale.indexOf("high") + 1);
  const distance = (word: string) => Math.abs((budgets[word] ?? 0) - budget);
  return candidates.reduce((nearest, word) => (distance(word) < distance(nearest) ? word : nearest));
}

function wantedBudget(reasoning: Reasoning | undefined): number | undefined {
  if (!reasoning || reasoning.disabled) return undefined;
  const effort = reasoning.effort ?? (reasoning.adaptive ? adaptiveEffort : undefined);
  return reasoning.budget ?? (effort === undefined ? undefined : (entryOf(budgets, effort) ?? budgets[adaptiveEffort]));
}

const rank = (effort: string): number => scale.indexOf(effort);
