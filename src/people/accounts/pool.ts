/** Selects the account for a request: premium requests use the accounts in registration order; free requests use each account in turn, unless configured otherwise. */
import { inBoth, joined, ProxyError, retryHeaders, type Words, words } from "../../lib/errors";
import { withoutFullStop, zonedTime } from "../../lib/format";
import { withTimeLimit } from "../../lib/net/time-limit";
import type { Account } from "./account";
import { canServe, endOf, isRetryDue, mayEndEarly, needsPerson, reasonOf, type ShownState } from "./account-state";
import { suspensionError } from "./suspension";

/** What a request needs from an account. */
export interface Need {
  premium: boolean;
  model?: string;
  /** Whether the account can serve the request at all, for example because its model list has the model. */
  capable?: (account: Account) => boolean;
}

interface PoolParts {
  /** The active accounts in registration order, a temporary one first. Read at each use. */
  accounts(): Account[];
  /** Whether free models use the accounts in registration order too, instead of round-robin. Read at each use. */
  freeInOrder?: () => boolean;
  /** Other servers have these accounts too, so that a suspension outlasts this process. */
  isShared?: boolean;
  /** The accounts of which one that is suspended stops all; by default the same. */
  watched?: () => Account[];
  /** A sentence: what to do while no account is signed in. */
  signInHint?: string;
  /** ms */
  now?: () => number;
}

/** Milliseconds that a request waits for GitHub's answer; the next request finds what comes later. */
const longestLookMs = 2000;

const everyone = () => true;
const isSuspended = (account: Account) => account.isSuspended;

export class Pool {
  readonly #parts: PoolParts;
  readonly #now: () => number;
  /** The account that a request for a free model was offered first: the next one has its turn. */
  #lastOffered: Account | undefined;

  constructor(parts: PoolParts) {
    this.#parts = parts;
    this.#now = parts.now ?? Date.now;
  }

  /** The accounts that can serve now, in the order to try them; none while GitHub has suspended one of them. */
  candidates(need: Need): Account[] {
    const inOrder = this.#parts.accounts();
    const able: Account[] = [];
    if (this.#isStopped()) return able;
    const isInOrder = inOrder.length < 2 || need.premium || this.#parts.freeInOrder?.();
    const first = isInOrder || !this.#lastOffered ? 0 : inOrder.indexOf(this.#lastOffered) + 1;
    const now = this.#now();
    for (let place = 0; place < inOrder.length; place++) {
      const account = inOrder[(first + place) % inOrder.length]!;
      if (isUsableFor(account, need, now)) able.push(account);
    }
    return able;
  }

  /** The candidates for a request that is sent now. Once for each request: for a free model the next one begins after the first of them. */
  takeTurn(need: Need): Account[] {
    const candidates = this.candidates(need);
    if (!need.premium) this.#lastOffered = candidates[0] ?? this.#lastOffered;
    return candidates;
  }

  /** Milliseconds until the first account can serve; 0 if one can now, undefined if none will without a person's help. */
  wait(need: Need): number | undefined {
    const all = this.#parts.accounts();
    if (this.#isStopped()) return undefined;
    const now = this.#now();
    const candidates = all.filter(need.capable ?? everyone);
    if (candidates.some((account) => isUsableFor(account, need, now))) return 0;
    const states = candidates.map((account) => account.stateFor(need.model, need.premium));
    const ends = states.flatMap((state) => ("until" in state && state.until) || []);
    return ends.length === 0 ? undefined : Math.min(...ends) - now;
  }

  /**
   * Looks again at the accounts that could serve but for a state that one answer has set for long.
   * @param signal Ends the wait with its reason.
   * @returns Whether one of them can serve now.
   */
  async lookAgain(need: Need, signal: AbortSignal): Promise<boolean> {
    const all = this.#parts.accounts();
    const { model, premium, capable = everyone } = need;
    const unsure = all.filter((account) => capable(account) && mayEndEarly(account.stateFor(model, premium)));
    if (unsure.length === 0 || this.#isStopped()) return false;
    const looks = Promise.all(unsure.map((account) => account.lookAgain()));
    await withTimeLimit(looks, longestLookMs, () => {}, signal);
    return this.candidates(need).length > 0;
  }

  #isStopped(): boolean {
    const { accounts, watched = accounts } = this.#parts;
    return watched().some(isSuspended);
  }

  /** The error for every request while GitHub has suspended one of the accounts: no account is used until a person has acted. */
  suspensionError(): ProxyError | undefined {
    const { accounts, watched = accounts } = this.#parts;
    const blocked = watched().find(isSuspended);
    return blocked && stoppedBy(blocked, this.#parts.isShared);
  }

  /**
   * Why there are no candidates: what happened, and what to do or how long to wait.
   * @param failures What became of a request, by account and in the order of time. The error is the last one of an account
   * whose state decides how long to wait, with the words that each account got.
   */
  whyNone(need: Need = { premium: true }, failures: ReadonlyMap<Account, AccountFailure> = new Map()): ProxyError {
    const { premium, model, capable = everyone } = need;
    const { accounts, signInHint = "Run `dragoman auth` to sign in." } = this.#parts;
    const [all, now] = [accounts(), this.#now()];
    if (all.length === 0)
      return new ProxyError("no_account", `No GitHub account is signed in. ${signInHint}`, { code: "no_account" });
    const suspension = this.suspensionError();
    if (suspension) return suspension;
    const candidates = all.filter(capable);
    const states = candidates.map((account) => ({
      id: account.id,
      state: account.stateFor(model, premium),
      failure: failures.get(account),
    }));
    const [first] = states
      .filter(({ state }) => !needsPerson(state) && !isUsable(state, premium, now))
      .map(({ state }) => ({ state, until: endOf(state) ?? Number.POSITIVE_INFINITY }))
      .sort((one, other) => one.until - other.until);
    const decisive = first?.state.name ?? "failed";
    const last = [...failures].findLast(
      ([account, { reason }]) => reason && account.stateFor(model, premium).name === decisive,
    );
    const asLast = (error: ProxyError) => (last ? withDetailsOf(last[1].error, error) : error);
    if (first && first.until < Number.POSITIVE_INFINITY) return asLast(tryAgainLater(states, first, now));
    if (first) return asLast(raiseFirst(states, now));
    if (candidates.length > 0 && !candidates.some((account) => isUsableFor(account, need, now)))
      return asLast(
        new ProxyError("no_account", words`No account can serve. ${reasonsOf(states, now)}`, {
          code: "accounts_failed",
          headers: { "x-should-retry": "false" },
        }),
      );
    return new ProxyError("no_account", `None of the accounts may use this model: ${namesOf(all)}.`, {
      code: "model_not_offered",
    });
  }
}

const isUsableFor = (account: Account, need: Need, now: number): boolean =>
  isUsable(account.stateFor(need.model, need.premium), need.premium, now) && (need.capable?.(account) ?? true);

/** Why an account did not serve a request. */
export interface AccountFailure {
  error: ProxyError;
  /** What the upstream answered, if that made the account's state. */
  reason?: Words;
}

/** An account, its state for the requested model, and its failure of this request. */
interface Candidate extends Pick<Account, "id" | "state"> {
  failure?: AccountFailure;
}

/** An upstream's error, with the sentence and the time of another one. */
function withDetailsOf({ kind, details }: ProxyError, { words: sentence, details: ours }: ProxyError): ProxyError {
  return new ProxyError(kind, sentence, { ...details, code: details.code ?? ours.code, headers: ours.headers });
}

/** No other account replaces a suspended one: that would evade the suspension, and could cost the other accounts too. */
function stoppedBy({ id, state }: Account, isShared = false): ProxyError {
  const others = `sign in again${isShared ? " or" : ","} remove the account, on the page Accounts or with \`dragoman auth rm ${id}\``;
  const remedies = `To continue, ${others}${isShared ? "" : ", or restart dragoman"}.`;
  return suspensionError(`dragoman has stopped sending requests. ${id}: ${reasonOf(state)} ${remedies}`);
}

function isUsable(state: ShownState, premium: boolean, now: number): boolean {
  return canServe(state, premium) || isRetryDue(state, now);
}

/** Some accounts are cooling down or exhausted: the client may retry when the first of them is ready. */
function tryAgainLater(
  accounts: Candidate[],
  { state: first, until }: { state: ShownState; until: number },
  now: number,
): ProxyError {
  const isOutage = first.name === "cooling" && first.outage;
  const { kind, code } = isOutage ? outage : first.name === "exhausted" ? outOfQuota : limited;
  const hint = canServe(first, false) ? ` ${freeMayWork}` : "";
  const seconds = Math.ceil((until - now) / 1000);
  const sentence = words`No account can serve this before ${zonedTime(until, now)}. ${reasonsOf(accounts, now)}${hint}`;
  return new ProxyError(kind, sentence, {
    code,
    headers: retryHeaders(seconds),
  });
}

/** No time is known at which it helps to ask again: a person has to allow more, here or at GitHub. */
const raiseFirst = (accounts: Candidate[], now: number) =>
  new ProxyError("quota", words`No account can serve this. ${reasonsOf(accounts, now)} ${freeMayWork}`, {
    code: "additional_spend_limit_reached",
  });

const freeMayWork = "Models that cost no quota may still work.";
const outage = { kind: "no_account", code: "github_unavailable" } as const;
const limited = { kind: "rate_limit", code: "rate_limited" } as const;
const outOfQuota = { kind: "quota", code: "quota_exceeded" } as const;

/** `octo: Its quota … (until 1 June, 00:00 UTC); work: …` */
function reasonsOf(accounts: Candidate[], now: number): Words {
  const reasons = accounts.map(({ id, state, failure }) => {
    const reason = failure?.reason ?? words`${reasonOf(state) ?? state.name}`;
    const until = endOf(state);
    const end = until === undefined ? "" : ` (until ${zonedTime(until, now)})`;
    return words`${id}: ${inBoth(reason, withoutFullStop)}${end}.`;
  });
  return joined(reasons, " ");
}

const namesOf = (accounts: Account[]) => accounts.map(({ id }) => id).join(", ");
