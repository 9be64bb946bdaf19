/** Opens the accounts: those that are saved, the temporary one, and those of the demo. */
import type { Losses } from "../books/changes/losses";
import type { Stores } from "../books/stores";
import type { Environment } from "../config/environment";
import type { ConfigStore } from "../config/store";
import type { ProxyError } from "../lib/errors";
import { Account, type AccountOptions } from "../people/accounts/account";
import type { AccountStore, SavedAccount, TemporaryAccount } from "../people/accounts/account-store";
import { type ActiveAccounts, openActiveAccounts } from "../people/accounts/active-accounts";
import { type Hosts, hostsFor } from "../people/accounts/hosts";
import { openMemoryAccountStore, savedDemoAccount } from "../people/accounts/memory-account-store";

interface AccountParts extends Pick<AccountOptions, "logger"> {
  environment: Environment;
  version: string;
  /** Serves as the first account, and is never saved. */
  temporary: TemporaryAccount | undefined;
  /** Its host, if it is of an enterprise's own GitHub. */
  enterpriseHost: string | undefined;
  demo: { url: string; accounts?: readonly { login: string; githubToken: string }[] | undefined } | undefined;
  clock: Pick<AccountOptions, "now" | "monotonic" | "random"> | undefined;
  /** The error for every request of a person while one of the person's accounts is suspended. */
  suspensionError(member: string | null): ProxyError | undefined;
  stores: Stores;
  config: ConfigStore;
  losses: Losses;
}

/** The temporary account, if there is one, and the saved ones; in the demo, its own. */
export function openAccounts({
  environment,
  version,
  temporary,
  enterpriseHost,
  demo,
  clock,
  stores,
  config,
  logger,
  losses,
  suspensionError,
}: AccountParts): { store: AccountStore; active: ActiveAccounts; hosts(name?: string): Hosts } {
  const hosts = (name?: string): Hosts =>
    demo
      ? { ...hostsFor(name, { githubUrl: demo.url, githubApiUrl: demo.url }), copilot: demo.url }
      : hostsFor(name, environment);
  const store = demo?.accounts ? openMemoryAccountStore(demo.accounts.map(savedDemoAccount)) : stores.accounts;
  const sync = stores.accountSync;
  const optionsAt = new Map<string | undefined, AccountOptions>();
  const open = (saved: SavedAccount | TemporaryAccount, host?: string) => {
    const options = optionsAt.get(host) ?? {
      ...clock,
      hosts: hosts(host),
      version,
      logger,
      suspensionError,
      sync,
      timeoutMs: environment.upstreamTimeoutMs,
      neverOverage: () => config.current.neverOverage,
      inspect: (where, account, answer) => losses.inspect(where, account, answer),
      paused: (key: string, member: string | null) =>
        member === null ? config.current.pausedAccounts.includes(key) : (store.choices?.isPaused(key) ?? false),
    };
    optionsAt.set(host, options);
    return new Account(saved, options);
  };
  const active = openActiveAccounts({
    store,
    temporary: temporary && open(temporary, enterpriseHost),
    open: (saved) => open(saved, saved.host),
    logger,
    sync,
  });
  return { store, active, hosts };
}
