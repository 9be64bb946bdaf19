/** The states of an account, and what they mean for a request. */

export interface AccountState {
  /** `failed`: a person must act. `cooling` (cooling down) and `exhausted` end by themselves. */
  name: "ready" | "cooling" | "exhausted" | "failed";
  /** ms timestamp; for `failed`, when GitHub may be asked again. */
  until?: number;
  /** A sentence or two. */
  reason?: string;
  /** `exhausted` for free models too; without it the account still serves those. */
  alsoFree?: boolean;
  /** `cooling` applies to premium models only: the upstream did not say what it limits, so free models are still served. */
  premiumOnly?: boolean;
  /** The upstream stated an implausibly late end: a successful quota check ends the state earlier. */
  doubtful?: boolean;
  /** `exhausted` until a person raises a budget at GitHub; at `until` a request tries whether that was done. */
  untilRaised?: boolean;
  /** `cooling` because GitHub cannot be reached for a token, not because of a limit. */
  outage?: boolean;
  /** `failed` because GitHub reports abuse or suspension: no account is used until a person has acted. */
  suspended?: boolean;
}

/** What an account shows: its state, or that the owner has paused it. */
export interface ShownState extends Omit<AccountState, "name"> {
  name: AccountState["name"] | "paused";
}

/** Every name of a shown state. */
export const accountStates = [
  "ready",
  "cooling",
  "exhausted",
  "failed",
  "paused",
] as const satisfies ShownState["name"][];

/** Whether an account in this state can serve a model; `premium` if the model costs quota. */
export function canServe({ name, alsoFree, premiumOnly }: ShownState, premium: boolean): boolean {
  if (name === "ready") return true;
  return !premium && (name === "exhausted" ? !alsoFree : name === "cooling" && premiumOnly === true);
}

/** How many of the accounts are in each state. */
export function countStates(accounts: readonly { state: ShownState }[]): Record<ShownState["name"], number> {
  const counts = { ready: 0, cooling: 0, exhausted: 0, failed: 0, paused: 0 };
  for (const { state } of accounts) counts[state.name] += 1;
  return counts;
}
