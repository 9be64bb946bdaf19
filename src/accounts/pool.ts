/** Who serves next: premium requests spend accounts in registration order, free ones take turns. */
import { ProxyError } from "../errors";
import type { Account, AccountState } from "./account";

export interface Pool {
  /**
   * The accounts that can serve now, in the order to try them. Each call with `premium` false moves the turn on.
   * @param able Whether the account could serve this request at all, for example because its own list has the model.
   */
  candidates(premium: boolean, able?: (account: Account) => boolean): Account[];
  /** Why there are no candidates: what happened, and what to do or how long to wait. */
  whyNone(premium?: boolean, able?: (account: Account) => boolean): ProxyError;
}

export interface PoolParts {
  /** The accounts awake now, in order of registration, a temporary one first. Read at each use. */
  accounts(): Account[];
  /** ms */
  now?: () => number;
}

const everyone = () => true;

export function openPool({ accounts, now = Date.now }: PoolParts): Pool {
  let lastServed: Account | undefined;

  return {
    candidates(premium, able = everyone) {
      const inOrder = accounts();
      const usable = (account: Account) => isUsable(account.state, premium, now()) && able(account);
      if (premium) return inOrder.filter(usable);
      const turn = lastServed ? inOrder.indexOf(lastServed) + 1 : 0;
      const inTurn = [...inOrder.slice(turn), ...inOrder.slice(0, turn)].filter(usable);
      lastServed = inTurn[0] ?? lastServed;
      return inTurn;
    },

    whyNone(premium = true, able = everyone) {
      const all = accounts();
      if (all.length === 0)
        return new ProxyError("no_account", "No GitHub account is signed in. Run `dragoman auth` to sign in.", {
          code: "no_account",
        });
      const capable = all.filter(able);
      const resting = capable.filter(({ state }) => state.name !== "failed" && !isUsable(state, premium, now()));
      if (resting.length > 0) return whenAgain(capable, resting, now());
      if (capable.length > 0 && capable.every(({ state }) => state.name === "failed"))
        return new ProxyError("no_account", `No account can serve. ${reasonsOf(capable, now())}`, {
          code: "accounts_failed",
          headers: { "x-should-retry": "false" },
        });
      return new ProxyError("no_account", `None of the accounts may use this model: ${namesOf(all)}.`, {
        code: "model_not_offered",
      });
    },
  };
}

function isUsable(state: AccountState, premium: boolean, now: number): boolean {
  if (state.name === "ready") return true;
  if (state.name === "exhausted" && !state.alsoFree && !premium) return true;
  return state.until !== undefined && state.until <= now;
}

/** Some rest or are used up: the client may come back when the first of them can serve. */
function whenAgain(accounts: Account[], resting: Account[], now: number): ProxyError {
  const { until = now, ...first } = resting
    .map(({ state }) => state)
    .sort((a, b) => (a.until ?? 0) - (b.until ?? 0))[0]!;
  const { kind, code, hint } = first.outage ? outage : first.name === "exhausted" ? outOfQuota : limited;
  const seconds = Math.max(1, Math.ceil((until - now) / 1000));
  const sentence =
    `No account can serve this before ${inWords(until, now)}. ${reasonsOf(accounts, now)} ${hint}`.trim();
  return new ProxyError(kind, sentence, {
    code,
    // Official SDKs sleep through a `retry-after` of any length: beyond half a minute they are told not to.
    headers: { "retry-after": String(seconds), ...(seconds > 30 ? { "x-should-retry": "false" } : {}) },
  });
}

const outage = { kind: "no_account", code: "github_unavailable", hint: "" } as const;
const limited = { kind: "rate_limit", code: "rate_limited", hint: "" } as const;
const outOfQuota = {
  kind: "quota",
  code: "quota_exceeded",
  hint: "Models that cost no quota may still work.",
} as const;

/** `octo: Its quota … (until 1 June, 00:00 UTC); work: …` */
function reasonsOf(accounts: Account[], now: number): string {
  return accounts
    .map(({ id, state: { name, until, reason } }) => {
      const told = reason?.replace(/\.$/, "") ?? name;
      return `${id}: ${told}${name === "failed" || until === undefined ? "" : ` (until ${inWords(until, now)})`}.`;
    })
    .join(" ");
}

const namesOf = (accounts: Account[]) => accounts.map(({ id }) => id).join(", ");

/** `14:05 UTC` if that is today, with seconds if it is soon; else `1 June, 00:00 UTC`. */
function inWords(time: number, now: number): string {
  const date = new Date(time);
  const clock = date.toISOString().slice(11, time - now < 3600_000 ? 19 : 16);
  if (date.toISOString().slice(0, 10) === new Date(now).toISOString().slice(0, 10)) return `${clock} UTC`;
  return `${date.getUTCDate()} ${months[date.getUTCMonth()]}, ${clock} UTC`;
}

const months = "January February March April May June July August September October November December".split(" ");
