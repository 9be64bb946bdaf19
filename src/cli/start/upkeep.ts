/**
 * Asks GitHub now and then for the quota of each account of a team, so that one that cannot serve is known before its member's
 * next request fails. Only the leader asks, one account after the other; no token is exchanged for it. The answers of models
 * report the quota too, so an account in use is not asked about at all.
 */

import { asProxyError } from "../../lib/errors";
import { dayMs, hourMs } from "../../lib/format";
import type { App } from "../../parts/app";
import type { Account } from "../../people/accounts/account";
import { isSuspended } from "../../people/accounts/account-state";

/** Milliseconds. */
interface UpkeepTimes {
  /** Between two looks for accounts that are due, and before the first. */
  look: number;
  /** Between two questions to GitHub, on average. */
  gap: number;
  /** For which a quota is not asked again. It doubles each time that nothing has changed, up to `longest`. */
  shortest: number;
  longest: number;
  /** After a question that GitHub did not answer. */
  again: number;
}

const usualTimes: UpkeepTimes = { look: 60_000, gap: 1_000, shortest: 6 * hourMs, longest: dayMs, again: hourMs / 4 };

/**
 * Runs until the server stops. Never throws: what is found out becomes the state of an account.
 * @param wait Resolves with false if the signal came before the milliseconds were over.
 */
export async function keepAccountsKnown(
  app: App,
  times: UpkeepTimes = usualTimes,
  wait: (ms: number, stopping: AbortSignal) => Promise<boolean> = passed,
): Promise<void> {
  const { stopping, logger } = app;
  /** When an account is asked about again at the earliest, and after how long that is. */
  const plans = new WeakMap<Account, { at: number; interval: number }>();

  /** A suspension stops all accounts of the same person. */
  const stopped = () => new Set(app.allAccounts.flatMap(({ state, member }) => (isSuspended(state) ? [member] : [])));

  const isDue = (account: Account, stoppedPeople: ReadonlySet<string | null>): boolean => {
    const { state, knownQuota, member } = account;
    if (state.name === "failed" || state.name === "paused" || stoppedPeople.has(member)) return false;
    const { at, interval } = plans.get(account) ?? { at: 0, interval: times.shortest };
    return app.now() >= Math.max(at, (knownQuota?.at ?? 0) + interval);
  };

  const plan = (account: Account, interval: number) => plans.set(account, { at: app.now() + interval, interval });

  /** @returns Whether GitHub answered, if only to refuse the account. */
  const ask = async (account: Account): Promise<boolean> => {
    const before = account.knownQuota;
    const interval = plans.get(account)?.interval ?? times.shortest;
    // Unless there is an answer. The next look begins with another account.
    plans.set(account, { at: app.now() + times.again, interval });
    try {
      const { remaining, stale } = await account.quota();
      if (stale) return false;
      plan(account, before?.remaining === remaining ? Math.min(2 * interval, times.longest) : times.shortest);
      return true;
    } catch (thrown) {
      logger.debug(`${account.id} did not provide its quota.`, thrown);
      return asProxyError(thrown).details.code === "sign_in_revoked";
    }
  };

  while (await wait(times.look, stopping)) {
    if (!app.isLeader) continue;
    const atLook = stopped();
    for (const account of app.allAccounts.filter((each) => isDue(each, atLook))) {
      // Much may have changed since the look.
      if (!app.isLeader || !app.allAccounts.includes(account) || !isDue(account, stopped())) continue;
      // While GitHub does not answer, the others wait for the next look.
      if (!(await ask(account))) break;
      if (!(await wait(times.gap * (0.5 + Math.random()), stopping))) return;
    }
  }
}

function passed(ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const stop = () => {
    clearTimeout(timer);
    resolve(false);
  };
  const timer = setTimeout(() => {
    signal.removeEventListener("abort", stop);
    resolve(true);
  }, ms);
  timer.unref();
  signal.addEventListener("abort", stop);
  return promise;
}
