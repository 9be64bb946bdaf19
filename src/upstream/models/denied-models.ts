/**
 * The models that accounts were refused, though their lists name them. Lists look complete also where an organization
 * does not allow the client, or a plan does not allow to name a model: only the answers to requests tell.
 */
import type { Account } from "../../accounts/account";
import { hourMs } from "../../format";
import type { Logger } from "../../logger";

export interface DeniedModels {
  /**
   * The account was refused the model.
   * @param listed Whether the account's list names it.
   * @param offered The models that GitHub says it would have served instead.
   */
  denied(account: Account, model: string, listed: Listed, offered?: readonly string[]): void;
  served(account: Account, model: string): void;
  /** Whether the account was refused this model, or every model, within the last hour. */
  isDenied(account: Account, model: string): boolean;
  /** The models that the account was asked for, if it was refused each of them, and more than one, within the last hour. */
  everyDenied(account: Account): string[] | undefined;
}

/** Where an account's model is named: in its last list, only in an earlier one, or in none that is known. */
export type Listed = "now" | "before" | "never";

const listedWords: Record<Listed, string> = {
  now: "which is in the account's list",
  before: "which was in an earlier list of the account and is not in its last one",
  never: "which is in no list of the account",
};

/** Milliseconds for which a refusal counts. */
const countsFor = hourMs;

interface Options {
  logger: Logger;
  /** Milliseconds. */
  monotonic(): number;
}

/** When the account was refused the model, by the monotonic clock; null if it served it since. */
type Outcomes = Map<string, number | null>;

export function openDeniedModels({ logger, monotonic }: Options): DeniedModels {
  const accounts = new WeakMap<Account, Outcomes>();
  const counts = (at: number | null | undefined) => typeof at === "number" && monotonic() - at < countsFor;

  function outcomesOf(account: Account): Outcomes {
    const known = accounts.get(account);
    if (known) return known;
    const outcomes: Outcomes = new Map();
    accounts.set(account, outcomes);
    return outcomes;
  }

  function everyDenied(account: Account): string[] | undefined {
    const outcomes = accounts.get(account);
    if (!outcomes || outcomes.size < 2) return undefined;
    const asked = [...outcomes].filter(([, at]) => at === null || counts(at));
    return asked.length > 1 && asked.every(([, at]) => at !== null) ? asked.map(([model]) => model) : undefined;
  }

  return {
    denied(account, model, listed, offered) {
      const outcomes = outcomesOf(account);
      if (!counts(outcomes.get(model))) {
        const instead = offered ? ` It would serve: ${offered.join(", ")}.` : "";
        logger.warn(`GitHub refused ${account.id} the model ${model}, ${listedWords[listed]}.${instead}`);
      }
      outcomes.set(model, monotonic());
    },
    served(account, model) {
      const outcomes = outcomesOf(account);
      if (outcomes.get(model) !== null) outcomes.set(model, null);
    },
    isDenied: (account, model) => counts(accounts.get(account)?.get(model)) || everyDenied(account) !== undefined,
    everyDenied,
  };
}
