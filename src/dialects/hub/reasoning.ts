/** Two ways to say how hard to think, and the one table between them. */
import { entryOf } from "../../json";
import type { Reasoning } from "./conversation";
import type { ModelFacts } from "./model";

/** Effort words, weakest first, with the tokens of thinking each stands for. */
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

/** The word for "as long as it takes" where a number is wanted: what adaptive models do when they are told nothing. */
const adaptiveEffort = "high";

/**
 * The effort to ask this model for: the word said, or the one nearest to the budget said, as far as the model goes
 * (the nearest weaker word it lists, else its weakest). Undefined when nothing was said or the model takes no such words.
 */
export function effortOf(reasoning: Reasoning | undefined, model: ModelFacts): string | undefined {
  const { efforts } = model.supports;
  const wanted = wantedEffort(reasoning);
  if (wanted === undefined || efforts.includes(wanted)) return wanted;
  if (!scale.includes(wanted)) return undefined;
  // Little thinking asked for does not become none.
  const weaker = efforts.filter((effort) => effort !== "none" && rank(effort) < rank(wanted));
  return weaker.at(-1) ?? efforts.find((effort) => rank(effort) > rank(wanted));
}

/**
 * The tokens of thinking to ask this model for: the number said, or the one the effort stands for, within the model's
 * bounds and below the tokens of the whole reply. Undefined when nothing was said, thinking is off, the model counts no
 * such tokens, or the reply leaves no room for its least thought.
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
  // A number never means more than `high`: 31,999 is some clients' everyday budget, the words above are a deliberate choice.
  const words = scale.slice(scale.indexOf("minimal"), scale.indexOf("high") + 1);
  const distance = (word: string) => Math.abs((budgets[word] ?? 0) - budget);
  return words.reduce((nearest, word) => (distance(word) < distance(nearest) ? word : nearest));
}

function wantedBudget(reasoning: Reasoning | undefined): number | undefined {
  if (!reasoning || reasoning.disabled) return undefined;
  const effort = reasoning.effort ?? (reasoning.adaptive ? adaptiveEffort : undefined);
  return reasoning.budget ?? (effort === undefined ? undefined : (entryOf(budgets, effort) ?? budgets[adaptiveEffort]));
}

const rank = (effort: string): number => scale.indexOf(effort);
