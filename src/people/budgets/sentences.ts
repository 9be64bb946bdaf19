/** What clients and people read of budgets. */
import type { Budget } from "../../config/budget-schema";
import { ProxyError, retryHeaders } from "../../lib/errors";
import { significant, zonedTime } from "../../lib/format";
import { inDollars, marked } from "../../lib/money";
import type { BudgetState } from "./entries";
import type { Holder } from "./holders";

/** `12.5 credits` */
export const amountOf = (amount: number, { unit }: Pick<Budget, "unit">): string =>
  `${significant(amount)} ${unitOf(amount, unit)}`;

function unitOf(amount: number, unit: Budget["unit"]): string {
  const words = unit === "premium" ? "premium requests" : unit;
  return amount === 1 ? words.slice(0, -1) : words;
}

/** What becomes of further requests at the limit: a sentence. */
export const consequenceOf = ({ then }: Pick<Budget, "then">): string =>
  ({
    stop: "Further requests are refused.",
    warn: "Requests are still sent, because it only warns.",
    fallback: "Fallbacks serve where there are some.",
  })[then];

/** ` of anna`, ` of the key ci`; empty if no name is known. */
export function ofHolder(holder: Pick<Holder, "kind" | "name"> | null): string {
  if (!holder?.name) return "";
  return {
    member: ` of ${holder.name}`,
    key: ` of the key ${holder.name}`,
    account: ` of ${holder.name}`,
    project: ` of the project ${holder.name}`,
  }[holder.kind];
}

/** Numbers that look like a status: opencode repeats a request whose error has one. */
const statusLike = /\b(?:429|5\d\d)\b/;

/** What was used of an amount, without its unit: at least so much, if requests of unknown price are among it. */
export const usedInWords = (used: number, unknown: number | null): string =>
  marked(significant(used), { cost_at_least: (unknown ?? 0) > 0 });

/** Of a budget in AI credits, what is used or its limit. @param unknown Requests whose cost is not known. */
export const creditsInDollars = (credits: number, unknown: number | null): string =>
  inDollars({ cost: { credits: credits * 1e9 }, cost_at_least: (unknown ?? 0) > 0 });

interface Exceeded {
  /** Whether the client may know what was used: of a member, others must have used nothing of it. */
  showsAmounts: boolean;
  /** What the request is expected to use, in the budget's unit; missing or null if that is not known. */
  expected?: number | null;
}

export function exceededError(
  { budget, holder, used, reserved, resetsAt }: BudgetState,
  now: number,
  { showsAmounts, expected }: Exceeded,
): ProxyError {
  const running = reserved > 0 ? ` and ${amountOf(reserved, budget)} reserved by running requests` : "";
  const seconds = Math.max(1, Math.ceil((resetsAt - now) / 1000));
  const left = budget.limit - used - reserved;
  const isTooDear = expected != null && left > 0;
  const amounts = isTooDear
    ? `: this request needs about ${amountOf(expected, budget)}, ${significant(left)} ${left === 1 ? "is" : "are"} left${running}`
    : `: ${significant(used)} of ${amountOf(budget.limit, budget)} used${running}`;
  const whose = ofHolder(holder);
  const what = showsAmounts ? (statusLike.test(whose) ? "" : whose) : ", which you share with others,";
  return new ProxyError(
    "quota",
    `The budget \`${budget.name}\`${what} ${isTooDear ? "has too little left" : "is used up"}${!showsAmounts || statusLike.test(amounts) ? "" : amounts}, free again at ${zonedTime(resetsAt, now)}. The owner can raise it on the Budgets page or in the config.`,
    {
      code: "budget_exceeded",
      headers: { ...retryHeaders(seconds), "x-should-retry": "false" },
      mayFallBack: budget.then === "fallback",
    },
  );
}

/** `<budget>=<amount> <unit>` for each; names are percent-encoded. */
export const remainingOf = (states: readonly BudgetState[]): string =>
  states
    .map(({ budget, used, reserved }) => {
      const left = Math.max(0, budget.limit - used - reserved);
      return `${encodeURIComponent(budget.name)}=${Number(left.toFixed(3))} ${budget.unit}`;
    })
    .join(", ");
