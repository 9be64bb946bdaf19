/** The accounts in use: a temporary one first, then the saved ones. Changes of the account store by any process are followed. */
import type { Logger } from "../../lib/logger";
import type { Account } from "./account";
import { type AccountChoices, type AccountStore, type SavedAccount, secretOf } from "./account-store";
import type { AccountSync } from "./account-sync";

export interface ActiveAccounts {
  /** A new array after each change. Requests in progress on a removed account still finish. */
  readonly accounts: Account[];
  /** Reads the store now; otherwise it is read once a second. */
  refresh(): void;
  close(): void;
}

interface ActiveAccountsOptions {
  store: Pick<AccountStore, "load" | "stamp" | "follow">;
  temporary?: Account;
  open(saved: SavedAccount): Account;
  logger: Logger;
  /** The other servers of a team. */
  sync?: Pick<AccountSync, "cached" | "follow">;
}

/** Reads the store at once, and then once a second. @throws as `store.load` */
export function openActiveAccounts(options: ActiveAccountsOptions): ActiveAccounts {
  const { store, temporary, logger, sync } = options;
  let active = new Map<string, Account>();
  let accounts: Account[] = [];
  const byKey = new Map<string, Account>();
  let stamp: string | undefined;

  function refresh(): void {
    const current = store.stamp();
    if (current === stamp) return;
    const before = active;
    const added: Account[] = [];
    const next = new Map<string, Account>();
    for (const saved of store.load()) {
      const key = keyOf(saved);
      const account = before.get(key) ?? open(saved);
      if (!before.has(key)) added.push(account);
      next.set(key, account);
    }
    active = next;
    // A team may have very many, so only what changed is looked at.
    const removed =
      before.size + added.length === active.size
        ? []
        : [...before].filter(([key]) => !active.has(key)).map(([, each]) => each);
    accounts = [...(temporary ? [temporary] : []), ...active.values()];
    for (const { key } of removed) byKey.delete(key);
    for (const account of stamp === undefined ? accounts : added) byKey.set(account.key, account);
    if (stamp !== undefined) logChanges(added, removed);
    stamp = current;
  }

  function open(saved: SavedAccount): Account {
    const account = options.open(saved);
    if (sync) account.applyRemote(account.identity, sync.cached(account.identity));
    return account;
  }

  function logChanges(added: Account[], removed: Account[]): void {
    for (const { id } of added) logger.info(`${id} is signed in and ready.`);
    for (const { id } of removed) logger.info(`${id} is signed out; requests already in progress will finish.`);
  }

  /** If the folder cannot be read for a moment, the accounts stay as they are. */
  function tryRefresh(): void {
    try {
      refresh();
    } catch (thrown) {
      logger.debug("The saved accounts could not be read; the present ones stay in use.", thrown);
    }
  }

  refresh();
  store.follow?.(tryRefresh);
  sync?.follow((account, found) => byKey.get(account.key)?.applyRemote(account, found));
  // Watching the folder would be quicker, but not every system and disk reports every change.
  const timer = setInterval(tryRefresh, 1000);
  timer.unref();
  return {
    get accounts() {
      return accounts;
    },
    refresh,
    close: () => clearInterval(timer),
  };
}

/**
 * The active accounts in the order that the owner wants: a temporary one stays first, the listed keys follow, then the others.
 * Those of a member stand among each other as the member wants. The result is the same array until something changes.
 */
export function arranged(
  active: Pick<ActiveAccounts, "accounts">,
  order: () => readonly string[],
  choices?: Pick<AccountChoices, "placeOf">,
): () => Account[] {
  let given: { accounts: Account[]; order: readonly string[] } | undefined;
  let result: Account[] = [];
  return () => {
    const wanted = order();
    const { accounts } = active;
    if (given?.accounts === accounts && given.order === wanted) return result;
    given = { accounts, order: wanted };
    result = wanted.length === 0 && !choices ? accounts : sorted(accounts, wanted, choices);
    return result;
  };
}

function sorted(
  accounts: Account[],
  wanted: readonly string[],
  choices: Pick<AccountChoices, "placeOf"> | undefined,
): Account[] {
  const placeOf = ({ key, temporary, member }: Account) => {
    if (member !== null) return choices?.placeOf(key) ?? Number.MAX_SAFE_INTEGER;
    const place = wanted.indexOf(key);
    return temporary ? -1 : place < 0 ? wanted.length : place;
  };
  return accounts.toSorted((one, other) => placeOf(one) - placeOf(other));
}

/**
 * The accounts of one person: of a member by the id, of the owner by null. The result is the same array until an account is added
 * or removed.
 */
export function accountsByMember(accounts: () => Account[]): (member: string | null) => Account[] {
  let given: Account[] | undefined;
  let groups = new Map<string | null, Account[]>();
  return (member) => {
    const all = accounts();
    if (given !== all) {
      given = all;
      groups = Map.groupBy(all, (account) => account.member);
    }
    return groups.get(member) ?? none;
  };
}

const none: Account[] = [];

/** A new token makes a new account: the state of the old sign-in does not apply to it. Nor does it to another member. */
function keyOf(saved: SavedAccount): string {
  let key = keys.get(saved);
  if (key === undefined) {
    const { host, login, app, mode, member = "" } = saved;
    key = [host, login.toLowerCase(), app, mode, secretOf(saved), member].join("\n");
    keys.set(saved, key);
  }
  return key;
}

/** Making the keys of all accounts of a large team again at each sign-in would hold up all streams. */
const keys = new WeakMap<SavedAccount, string>();
