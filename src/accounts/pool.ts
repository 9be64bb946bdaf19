/** Who serves next: premium requests spend accounts in registration order, free ones take turns unless the owner says otherwise. */
import { ProxyError, retryHeaders } from "../errors";
import { zonedTime } from "../format";
import type { Account, AccountState } from "./account";
import { goesOn } from "./status";
import { suspensionError } from "./suspension";

/** What a request asks of the account that serves it. */
export interface Need {
  premium: boolean;
  model?: string;
  /** Whether the account could serve it at all, for example because its own list has the model. */
  able?: (account: Account) => boolean;
}

export interface Pool {
  /**
   * The accounts that can serve now, in the order to try them; none while GitHub speaks of abuse to any of them. Each
   * call for a free model moves the turn on.
   */
  candidates(need: Need): Account[];
  /** Milliseconds until the first of them can serve; 0 when one can now, undefined when none will by itself. */
  wait(need: Need): number | undefined;
  /** Set while GitHub has blocked one of the accounts: then no account is used at all, until a person has acted. */
  stopped(): ProxyError | undefined;
  /** Why there are no candidates: what happened, and what to do or how long to wait. */
  whyNone(need?: Need): ProxyError;
}

export interface PoolParts {
  /** The accounts awake now, in order of registration, a temporary one first. Read at each use. */
  accounts(): Account[];
  /** Whether models that cost no quota take the accounts in order too, instead of in turn. Read at each use. */
  freeInOrder?: () => boolean;
  /** ms */
  now?: () => number;
}

const everyone = () => true;

export function openPool({ accounts, freeInOrder = () => false, now = Date.now }: PoolParts): Pool {
  let lastServed: Account | undefined;

  const usableFor = ({ premium, model, able = everyone }: Need) => {
    const at = now();
    return (account: Account) => isUsable(account.stateFor(model, premium), premium, at) && able(account);
  };
  const suspended = () => accounts().find(({ state }) => state.suspended);

  return {
    candidates(need) {
      const inOrder = accounts();
      if (suspended()) return [];
      const usable = usableFor(need);
      if (need.premium || freeInOrder()) return inOrder.filter(usable);
      const turn = lastServed ? inOrder.indexOf(lastServed) + 1 : 0;
      const inTurn = [...inOrder.slice(turn), ...inOrder.slice(0, turn)].filter(usable);
      lastServed = inTurn[0] ?? lastServed;
      return inTurn;
    },

    wait(need) {
      if (suspended()) return undefined;
      const usable = usableFor(need);
      const capable = accounts().filter(need.able ?? everyone);
      if (capable.some(usable)) return 0;
      const resting = capable
        .map((account) => account.stateFor(need.model, need.premium))
        .filter(({ name }) => name !== "failed");
      const ends = resting.flatMap(({ until }) => until ?? []);
      return ends.length === 0 ? undefined : Math.max(0, Math.min(...ends) - now());
    },

    stopped() {
      const blocked = suspended();
      return blocked && stoppedBy(blocked);
    },

    whyNone(need = { premium: true }) {
      const { premium, model, able = everyone } = need;
      const all = accounts();
      if (all.length === 0)
        return new ProxyError("no_account", "No GitHub account is signed in. Run `dragoman auth` to sign in.", {
          code: "no_account",
        });
      const blocked = suspended();
      if (blocked) return stoppedBy(blocked);
      const usable = usableFor(need);
      const capable = all.filter(able);
      const known = capable.map((account) => ({ id: account.id, state: account.stateFor(model, premium) }));
      const resting = known.filter(({ state }) => state.name !== "failed" && !isUsable(state, premium, now()));
      if (resting.length > 0) return whenAgain(known, resting, now());
      if (capable.length > 0 && !capable.some(usable))
        return new ProxyError("no_account", `No account can serve. ${reasonsOf(known, now())}`, {
          code: "accounts_failed",
          headers: { "x-should-retry": "false" },
        });
      return new ProxyError("no_account", `None of the accounts may use this model: ${namesOf(all)}.`, {
        code: "model_not_offered",
      });
    },
  };
}

/** An account as the sentences below need it, for the model that was asked for. */
type Known = Pick<Account, "id" | "state">;

/** No account takes the place of one that GitHub has blocked: that would be evading, and could cost the others too. */
function stoppedBy({ id, state }: Account): ProxyError {
  const ways = `To go on, sign in again, remove the account with \`dragoman auth rm ${id}\`, or start dragoman anew.`;
  return suspensionError(`dragoman has stopped sending requests. ${id}: ${state.reason} ${ways}`);
}

function isUsable(state: AccountState, premium: boolean, now: number): boolean {
  return goesOn(state, premium) || (state.until !== undefined && state.until <= now);
}

/** Some rest or are used up: the client may come back when the first of them can serve. */
function whenAgain(accounts: Known[], resting: Known[], now: number): ProxyError {
  const { until = now, ...first } = resting
    .map(({ state }) => state)
    .sort((a, b) => (a.until ?? 0) - (b.until ?? 0))[0]!;
  const { kind, code } = first.outage ? outage : first.name === "exhausted" ? outOfQuota : limited;
  const hint = goesOn(first, false) ? "Models that cost no quota may still work." : "";
  const seconds = Math.max(1, Math.ceil((until - now) / 1000));
  const sentence =
    `No account can serve this before ${zonedTime(until, now)}. ${reasonsOf(accounts, now)} ${hint}`.trim();
  return new ProxyError(kind, sentence, {
    code,
    headers: retryHeaders(seconds),
  });
}

const outage = { kind: "no_account", code: "github_unavailable" } as const;
const limited = { kind: "rate_limit", code: "rate_limited" } as const;
const outOfQuota = { kind: "quota", code: "quota_exceeded" } as const;

/** `octo: Its quota … (until 1 June, 00:00 UTC); work: …` */
function reasonsOf(accounts: Known[], now: number): string {
  return accounts
    .map(({ id, state: { name, until, reason } }) => {
      const told = reason?.replace(/\.$/, "") ?? name;
      return `${id}: ${told}${name === "failed" || until === undefined ? "" : ` (until ${zonedTime(until, now)})`}.`;
    })
    .join(" ");
}

const namesOf = (accounts: Account[]) => accounts.map(({ id }) => id).join(", ");
