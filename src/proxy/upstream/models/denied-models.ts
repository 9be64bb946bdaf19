/**
 * The models that accounts were refused, though their lists name them. Lists look complete also where an organization
 * does not allow the client, or a plan does not allow to name a model: only the answers to requests tell.
 */

import { hourMs } from "../../../lib/format";
import type { Logger } from "../../../lib/logger";
import type { Account } from "../../../people/accounts/account";

/** Where an account's model is named: in its last list, only in an earlier one, or in none that is known. */
type Listed = "now" | "before" | "never";

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

export class DeniedModels {
  readonly #accounts = new WeakMap<Account, Outcomes>();
  readonly #namesRefusedAt = new WeakMap<Account, number>();

  constructor(private readonly options: Options) {}

  /**
   * The account was refused the model.
   * @param listed Whether the account's list names it.
   * @param offered The models that GitHub says it would have served instead.
   */
  denied(account: Account, model: string, listed: Listed, offered?: readonly string[]): void {
    const { logger, monotonic } = this.options;
    const outcomes = this.#outcomesOf(account);
    if (!this.#counts(outcomes.get(model))) {
      const instead = offered ? ` It would serve: ${offered.join(", ")}.` : "";
      logger.warn(`GitHub refused ${account.id} the model ${model}, ${listedWords[listed]}.${instead}`);
    }
    outcomes.set(model, monotonic());
  }

  served(account: Account, model: string): void {
    this.#outcomesOf(account).set(model, null);
  }

  /** The account was refused a model for its name, whichever it was. */
  refusedName(account: Account): void {
    this.#namesRefusedAt.set(account, this.options.monotonic());
  }

  /** Whether that was within the last hour, and it has served no model by name: else one model was meant, and not all. */
  refusesNames(account: Account): boolean {
    const hasServed = () => [...(this.#accounts.get(account)?.values() ?? [])].includes(null);
    return this.#counts(this.#namesRefusedAt.get(account)) && !hasServed();
  }

  /** Whether the account was refused this model, or every model, within the last hour. */
  isDenied(account: Account, model: string): boolean {
    const outcomes = this.#accounts.get(account);
    if (outcomes === undefined || outcomes.get(model) === null) return false;
    return this.#counts(outcomes.get(model)) || this.everyDenied(account) !== undefined;
  }

  /** The models that the account was asked for, if it was refused each of them, and more than one, within the last hour. */
  everyDenied(account: Account): string[] | undefined {
    const outcomes = this.#accounts.get(account);
    if (!outcomes || outcomes.size < 2) return undefined;
    const asked = [...outcomes].filter(([, at]) => at === null || this.#counts(at));
    return asked.length > 1 && asked.every(([, at]) => at !== null) ? asked.map(([model]) => model) : undefined;
  }

  #outcomesOf(account: Account): Outcomes {
    const outcomes: Outcomes = this.#accounts.get(account) ?? new Map();
    this.#accounts.set(account, outcomes);
    return outcomes;
  }

  #counts(at: number | null | undefined): boolean {
    return typeof at === "number" && this.options.monotonic() - at < countsFor;
  }
}
