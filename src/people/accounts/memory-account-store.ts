/** Accounts that are kept for this run only: those of the demo. */
import { type AccountStore, findAmong, type SavedAccount } from "./account-store";

export function openMemoryAccountStore(initial: readonly SavedAccount[]): AccountStore {
  let accounts = [...initial];
  let changes = 0;
  const isSame = (one: SavedAccount, other: SavedAccount) =>
    one.host === other.host && one.login.toLowerCase() === other.login.toLowerCase();
  return {
    load: () => accounts,
    prepare() {},
    add(account) {
      const before = accounts.find((each) => isSame(each, account));
      const kept = { ...account, addedAt: before?.addedAt ?? account.addedAt };
      accounts = before ? accounts.map((each) => (each === before ? kept : each)) : [...accounts, kept];
      changes += 1;
      return before ? "replaced" : "added";
    },
    find: (which) => findAmong(accounts, which),
    remove(which) {
      const { found, namesake } = findAmong(accounts, which);
      accounts = accounts.filter((each) => each !== found);
      changes += 1;
      return { removed: found, namesake };
    },
    stamp: () => String(changes),
  };
}

/** @param index Its place among the demo's accounts. */
export function savedDemoAccount(
  { login, githubToken }: { login: string; githubToken: string },
  index: number,
): SavedAccount {
  const direct = githubToken.startsWith("gho_");
  return {
    login,
    host: "github.com",
    app: direct ? "opencode" : "vscode",
    mode: direct ? "direct" : "exchange",
    githubToken,
    addedAt: index,
  };
}
