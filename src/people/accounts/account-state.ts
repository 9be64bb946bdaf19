/** The states of an account, and what they mean for a request. Timestamps are in ms; a reason is a sentence or two. */

/** Ends by itself. */
export interface Cooling {
  name: "cooling";
  until: number;
  reason?: string;
  /** Premium models only: the upstream did not say what it limits, so free models are still served. */
  premiumOnly?: boolean;
  /** The upstream stated an implausibly late end: a successful quota check ends the state earlier. */
  doubtful?: boolean;
  /** GitHub cannot be reached for a token; this is no limit. */
  outage?: boolean;
}

/** Ends by itself. */
interface Exhausted {
  name: "exhausted";
  until: number;
  reason?: string;
  /** Without it the account still serves free models. */
  alsoFree?: boolean;
  /** It lasts until a person raises a budget at GitHub; at `until` a request tries whether that was done. */
  untilRaised?: boolean;
}

/** A person must act. */
interface Failed {
  name: "failed";
  /** When GitHub may be asked again. */
  retryAt: number;
  reason?: string;
  /** GitHub reports abuse or suspension: no account is used until a person has acted. */
  suspended?: boolean;
}

export type AccountState = { name: "ready" } | Cooling | Exhausted | Failed;

/** A state to enter. Without its time it gets the default of the state. */
export type NewState = { name: "ready" } | NewTrouble;
export type NewTrouble = Untimed<Cooling, "until"> | Untimed<Exhausted, "until"> | Untimed<Failed, "retryAt">;
type Untimed<State, Time extends keyof State> = Omit<State, Time> & Partial<Pick<State, Time>>;

/** What an account shows: its state, that its person has paused it, or that the config forbids it paid overage. */
export type ShownState = AccountState | Untimed<Exhausted, "until"> | { name: "paused"; reason: string };

/** Every name of a shown state. */
export const accountStates = [
  "ready",
  "cooling",
  "exhausted",
  "failed",
  "paused",
] as const satisfies ShownState["name"][];

/** Whether an account in this state can serve a model; `premium` if the model costs quota. */
export function canServe(state: ShownState, premium: boolean): boolean {
  if (state.name === "ready") return true;
  if (premium) return false;
  return state.name === "exhausted" ? !state.alsoFree : state.name === "cooling" && state.premiumOnly === true;
}

/** GitHub reports abuse or suspension. */
export const isSuspended = (state: ShownState | NewState): boolean =>
  state.name === "failed" && state.suspended === true;

/** A person has to end the state: waiting does not help. */
export const needsPerson = ({ name }: ShownState): boolean => name === "failed" || name === "paused";

/** An account that has failed may be tried again, or the state is over. */
export const isRetryDue = (state: ShownState, now: number): boolean =>
  state.name === "failed" ? state.retryAt <= now : "until" in state && state.until !== undefined && state.until <= now;

/**
 * The state has an end that is far away and that one answer set, and the quota endpoint may say by now that it is over: its
 * person has bought more, or the end was a mistake. Nothing but its end tells that a limit with a plausible one is over.
 */
export const mayEndEarly = (state: ShownState): boolean =>
  state.name === "exhausted" || (state.name === "cooling" && state.doubtful === true);

/** When the state ends by itself; undefined if it does not. */
export function endOf(state: ShownState): number | undefined {
  if (state.name === "cooling") return state.until;
  return state.name === "exhausted" && !state.untilRaised ? state.until : undefined;
}

export const reasonOf = (state: ShownState | NewState): string | undefined =>
  "reason" in state ? state.reason : undefined;

/** How many of the accounts are in each state. */
export function countStates(accounts: readonly { state: ShownState }[]): Record<ShownState["name"], number> {
  const counts = { ready: 0, cooling: 0, exhausted: 0, failed: 0, paused: 0 };
  for (const { state } of accounts) counts[state.name] += 1;
  return counts;
}
