/** The accounts that are awake: the saved ones as they are saved now, whoever changed them, and a temporary one first. */
import type { Logger } from "../logger";
import type { Account } from "./account";
import type { AccountStore, SavedAccount } from "./account-store";

export interface ActiveAccounts {
  /** A new list whenever it changes. Requests under way on an account that is gone end as they would have. */
  readonly accounts: Account[];
  /** Looks now; otherwise it happens once a second. */
  refresh(): void;
  close(): void;
}

export interface ActiveAccountsOptions {
  store: Pick<AccountStore, "load" | "stamp">;
  temporary?: Account;
  open(saved: SavedAccount): Account;
  logger: Logger;
}

/** Looks at once, and then once a second. @throws what `registry.load` does. */
export function openActiveAccounts({
  store: registry,
  temporary,
  open: wake,
  logger,
}: ActiveAccountsOptions): ActiveAccounts {
  let awake = new Map<string, Account>();
  let accounts: Account[] = [];
  let stamp: string | undefined;

  function look(): void {
    const current = registry.stamp();
    if (current === stamp) return;
    const before = awake;
    const saved = registry.load();
    awake = new Map(saved.map((each) => [keyOf(each), before.get(keyOf(each)) ?? wake(each)]));
    accounts = [...(temporary ? [temporary] : []), ...awake.values()];
    if (stamp !== undefined) tell(before);
    stamp = current;
  }

  function tell(before: Map<string, Account>): void {
    for (const [key, { id }] of awake) if (!before.has(key)) logger.info(`${id} is signed in; it serves from now on.`);
    for (const [key, { id }] of before)
      if (!awake.has(key)) logger.info(`${id} is signed out; requests under way with it go on.`);
  }

  /** A folder that cannot be read for a moment is no reason to send everybody away. */
  function lookAgain(): void {
    try {
      look();
    } catch (thrown) {
      logger.debug("The saved accounts could not be looked through; those known go on.", thrown);
    }
  }

  look();
  // Watching the folder would be quicker, but not every system and disk tells of every change.
  const timer = setInterval(lookAgain, 1000);
  timer.unref();
  return {
    get accounts() {
      return accounts;
    },
    refresh: look,
    close: () => clearInterval(timer),
  };
}

/** With another token it is another account: what was known of the old sign-in says nothing of the new one. */
const keyOf = ({ host, login, app, mode, githubToken }: SavedAccount) =>
  [host, login.toLowerCase(), app, mode, githubToken].join("\n");
