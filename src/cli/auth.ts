/** `dragoman auth`: sign in, see who is signed in, and sign out. */

import type { Stores } from "../books/stores";
import type { Environment } from "../config/environment";
import { codeOf, ProxyError } from "../lib/errors";
import { type AccountStore, accountKeyOf, type SavedAccount } from "../people/accounts/account-store";
import { revocationPage, type SignInApp } from "../people/accounts/hosts";
import { forgetInConfig } from "../people/accounts/own-accounts";
import { roadColumns, roads } from "../people/accounts/roads";
import { githubApp } from "../people/accounts/temporary-account";
import { usageLines } from "./format-usage";
import { table, wrapped } from "./layout";
import { serverOf } from "./running-server";
import { signInAppOf, signInCli, signInPerson } from "./sign-in";
import { atTerminal, bold, interrupted, mayRemove, print, say, withProgress } from "./terminal";
import { askGithub } from "./usage";
import { asUsage, UsageError } from "./usage-error";
import { withStores } from "./with-stores";

interface AuthOptions {
  version: string;
  environment: Environment;
}

interface SignInChoice extends AuthOptions {
  app: SignInApp;
  enterpriseHost?: string;
  /** `auth add`: sign in to another account. */
  another: boolean;
}

/** `auth`, `auth add` */
export const authSignIn = ({ another, ...options }: SignInChoice): Promise<number> =>
  withSaved(options, (store) => signInWith(store, options, another));

async function signInWith(
  store: AccountStore,
  options: Omit<SignInChoice, "another">,
  another: boolean,
): Promise<number> {
  const names = store.load().map(({ login }) => login);
  if (names.length > 0 && !another)
    say(
      `Already signed in: ${names.join(", ")}. Signing in as the same user renews that sign-in; another user becomes one more account.`,
    );
  const signal = interrupted();
  try {
    await signInPerson({ ...options, store }, signal);
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
    say("Nothing was saved.");
    return 130;
  }
  return next(options);
}

function next({ environment }: AuthOptions): number {
  const server = serverOf(environment);
  say(
    server
      ? `The server at ${server.url} picks it up within two seconds.`
      : "Next: `dragoman start`, then `dragoman connect claude-code --write` for Claude Code, or `dragoman connect` for others.",
  );
  return 0;
}

interface AppChoice extends AuthOptions {
  /** The App ID or client id. */
  id: string;
  installation: string | undefined;
  repository: string | undefined;
  /** A path, or `-` for stdin. */
  privateKey: string | undefined;
  enterpriseHost?: string;
}

/** `auth add --app`. @throws ProxyError with what is missing at GitHub */
export async function authApp(options: AppChoice): Promise<number> {
  const { id, installation, repository, privateKey } = options;
  if (installation === undefined || privateKey === undefined)
    throw new UsageError("--app needs --installation, and --private-key with the .pem file.");
  const text = await (privateKey === "-" ? Bun.stdin : Bun.file(privateKey)).text().catch((cause) => {
    throw new UsageError(`The file ${privateKey} cannot be read${codeOf(cause) ? ` (${codeOf(cause)})` : ""}.`);
  });
  const given = asUsage(() => githubApp({ app: id, installation, repository, privateKey: text }));
  return withSaved(options, async (store) => {
    await signInAppOf(given, { ...options, store });
    return next(options);
  });
}

/** `auth add --copilot-cli`. @param command Its path or name. @throws ProxyError with what is missing */
export const authCli = (options: AuthOptions & { command: string }): Promise<number> =>
  withSaved(options, async (store) => {
    await signInCli(options.command, { ...options, store });
    return next(options);
  });

/** `auth ls`, numbered from 1. With `quota`, the quota is requested from GitHub. */
export async function authList({ quota, ...options }: AuthOptions & { quota: boolean }): Promise<number> {
  const accounts = await withSaved(options, async (store) => store.load());
  if (accounts.length === 0) {
    say("No GitHub account is signed in. Run `dragoman auth` to sign in.");
    return 0;
  }
  const lines = quota
    ? usageLines((await withProgress("Asking GitHub", () => askGithub(options, true))).accounts, 1)
    : table(accounts.map((account, at) => [String(at + 1), account.login, account.host, appOf(account)]));
  print(...lines);
  return 0;
}

/** `auth roads`: as a list at any width, since most cells are sentences. */
export async function authRoads(): Promise<number> {
  const { name: _, ...columns } = roadColumns;
  const width = Math.max(...Object.values(columns).map((head) => head.length));
  for (const { name, ...road } of roads)
    print(
      bold(name),
      ...Object.entries(columns).map(([column, head]) =>
        wrapped(`${head.padEnd(width)}  ${road[column as keyof typeof road]}`, 2),
      ),
      "",
    );
  return 0;
}

const appOf = (account: SavedAccount) => ("installation" in account ? `GitHub App ${account.app}` : account.app);

/** `auth rm`: asks for confirmation at a terminal. @throws ProxyError if there is no such account, or several */
export const authRemove = (options: RemoveOptions): Promise<number> =>
  withStores(options.environment, (stores) => removeFrom(stores, options));

interface RemoveOptions extends AuthOptions {
  which: string;
  force: boolean;
}

async function removeFrom(stores: Stores, options: RemoveOptions): Promise<number> {
  const store = stores.accounts;
  const { found, namesake } = store.find(options.which);
  const name = `${found.login} at ${found.host}`;
  if (namesake)
    say(`${options.which} is read as a number of the list, not as the account of that name at ${namesake.host}.`);
  if (!options.force && atTerminal()) {
    if (!(await mayRemove(`Remove ${name} from this machine?`, false))) return 1;
    const { login, host } = store.find(options.which).found;
    if (login !== found.login || host !== found.host)
      throw new ProxyError(
        "invalid_request",
        "The list of accounts changed in the meantime, so nothing was removed. Run `dragoman auth ls` and try again.",
      );
  }
  await store.remove(options.which);
  say(`Removed ${name}; a running server stops using it within two seconds.`, whatStays(found));
  if (found.member === undefined) await forgetInConfig(stores.config, accountKeyOf(found));
  return 0;
}

function whatStays(removed: SavedAccount): string {
  if ("command" in removed) return "The Copilot CLI stays signed in.";
  const kept = "installation" in removed ? "key" : "token";
  return `Its ${kept} is deleted from this machine. It stays valid at GitHub until you revoke the app at ${revocationPage(removed)}.`;
}

const withSaved = <T>({ environment }: AuthOptions, work: (store: AccountStore) => Promise<T>): Promise<T> =>
  withStores(environment, (stores) => work(stores.accounts));
