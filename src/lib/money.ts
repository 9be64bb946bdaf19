/**
 * Money and shares: how costs are added, which of them are unknown, and how they are said. Every page, command, file and
 * answer that shows a cost or a share takes it from here.
 */
import { dollars, formatAmount } from "./format";

/** What plans bill in, and how an amount is said. Amounts of two units are never added. */
export const costUnits = {
  credits: { label: "AI credits", one: "AI credit", brief: "cr" },
  premium: { label: "Premium requests", one: "premium request", brief: "pr" },
} as const;
export type CostUnit = keyof typeof costUnits;
export const costUnitNames = Object.keys(costUnits) as CostUnit[];

export const isCostUnit = (name: string | undefined): name is CostUnit =>
  name !== undefined && Object.hasOwn(costUnits, name);

/** What one request costs. */
export interface Cost {
  unit: CostUnit;
  /** Billionths of the unit; null if it is unknown. */
  amount: number | null;
  /** It is at least this: not all that is charged for is known. */
  isAtLeast?: true;
}

/** What requests cost. */
export interface Costs {
  /** Billionths by unit: a unit in which nothing is known is missing. */
  cost: Partial<Record<CostUnit, number>>;
  /** It is at least this: the cost of a request is known in part only, or that of some of several requests not at all. */
  cost_at_least: boolean;
}

/** What one request of the history cost. */
export const costsOf = ({ cost, cost_unit, cost_at_least }: CostOfRow): Costs => ({
  cost: cost === null || cost_unit === null ? {} : { [cost_unit]: cost },
  cost_at_least: cost === null || Boolean(cost_at_least),
});

interface CostOfRow {
  cost: number | null;
  cost_unit: CostUnit | null;
  cost_at_least: boolean | 0 | 1;
}

/** Of the known values. */
export const sum = (values: readonly (number | null)[]): number =>
  values.reduce<number>((total, value) => total + (value ?? 0), 0);

/** The same; null if no value is known. */
export const sumKnown = (values: readonly (number | null)[]): number | null =>
  values.some((value) => value !== null) ? sum(values) : null;

/** Nothing is known of the cost. */
export const isUnknown = ({ cost, cost_at_least }: Costs): boolean => cost_at_least && Object.keys(cost).length === 0;

export function addedCost(costs: readonly Costs[]): Costs {
  const cost: Costs["cost"] = {};
  for (const each of costs) for (const [unit, amount] of knownIn(each.cost)) cost[unit] = (cost[unit] ?? 0) + amount;
  return { cost, cost_at_least: costs.some(({ cost_at_least }) => cost_at_least) };
}

export const knownIn = (cost: Costs["cost"]): [CostUnit, number][] =>
  costUnitNames.flatMap((unit) => (cost[unit] === undefined ? [] : [[unit, cost[unit]]]));

/** What is shown of a cost, by unit: one in which all was free is left out beside another. */
export function amountsOf({ cost }: Pick<Costs, "cost">): [CostUnit, number][] {
  const known = knownIn(cost);
  const charged = known.filter(([, amount]) => amount > 0);
  return charged.length > 0 ? charged : [known[0] ?? ["credits", 0]];
}

/** For sorting, the dearest first: by the first unit in which two costs differ. */
export const byCost = (one: Pick<Costs, "cost">, other: Pick<Costs, "cost">): number =>
  costUnitNames.reduce((found, unit) => found || (other.cost[unit] ?? 0) - (one.cost[unit] ?? 0), 0);

/** Marks what is at least so much, everywhere by the same sign: `≥ 4.21`. */
export const marked = (amount: string, { cost_at_least }: Pick<Costs, "cost_at_least">): string =>
  cost_at_least ? `≥ ${amount}` : amount;

/** The AI credits in dollars, with the same mark: `≥ $0.04`; empty if nothing is known of them. */
export const inDollars = ({ cost, cost_at_least }: Costs): string =>
  cost.credits === undefined ? "" : marked(dollars(cost.credits), { cost_at_least });

/**
 * `4.21 AI credits, 2 premium requests`, `≥ 4.21 AI credits`, `nothing`; undefined if the cost is unknown.
 * @param brief `4.21 cr + 2 pr`, `≥ 4.21 cr`, `0 cr`.
 */
export function costInWords(costs: Costs, brief = false): string | undefined {
  if (isUnknown(costs)) return undefined;
  const amounts = amountsOf(costs);
  if (!brief && !costs.cost_at_least && amounts.every(([, amount]) => amount === 0)) return "nothing";
  const words = amounts.map(([unit, amount]) => {
    const { one, brief: short } = costUnits[unit];
    return `${formatAmount(amount)} ${brief ? short : amount === 1e9 ? one : `${one}s`}`;
  });
  return marked(words.join(brief ? " + " : ", "), costs);
}

/** The tokens of requests of which both the input and its cached part are known. */
export interface CacheableTokens {
  input_tokens: number;
  cached_tokens: number;
}

export const addedCacheable = (tokens: readonly CacheableTokens[]): CacheableTokens => ({
  input_tokens: sum(tokens.map(({ input_tokens }) => input_tokens)),
  cached_tokens: sum(tokens.map(({ cached_tokens }) => cached_tokens)),
});

/** The cached part of the input, 0 … 1; null where there is no input. */
export const cachedShareOf = ({ input_tokens, cached_tokens }: CacheableTokens): number | null =>
  input_tokens === 0 ? null : cached_tokens / input_tokens;
