/** A sign-in from the first call to the saved account. */
import { inBoth, ProxyError } from "../../lib/errors";
import type { AccountStore, SavedAccount } from "./account-store";
import { signedInToCli } from "./copilot-cli";
import { fetchLogin, type GithubCaller } from "./github";
import { revocationPage } from "./hosts";
import { type GithubApp, lookUpInstallation } from "./installation";
import { pauseIn, type SignInSteps, signIn } from "./sign-in";

interface CompletedSignIn {
  saved: SavedAccount;
  /** `replaced`: this person was signed in before. */
  outcome: "added" | "replaced";
}

/**
 * @param member Whose account it will be; missing for the owner's.
 * @throws ProxyError as `signIn` and the store do; or the signal's reason
 */
export async function completeSignIn(
  steps: SignInSteps,
  store: Pick<AccountStore, "prepare" | "add">,
  member?: string,
): Promise<CompletedSignIn> {
  const { app, hosts } = steps;
  await store.prepare(hosts.name);
  const githubToken = await signIn(steps);
  const login = await withRetries(() => fetchLogin(steps, githubToken, app.mode), steps);
  const account = { login, host: hosts.name, app: app.name, mode: app.mode, githubToken, addedAt: Date.now() };
  const saved = member === undefined ? account : { ...account, member };
  try {
    return { saved, outcome: await withRetries(async () => store.add(saved), steps) };
  } catch (thrown) {
    throw thrown instanceof ProxyError ? notKept(thrown, saved) : thrown;
  }
}

/**
 * Signs in an App where it is installed: GitHub names the organization, and says what is missing there.
 * @throws ProxyError as `lookUpInstallation` and the store do
 */
export async function completeApp(
  caller: GithubCaller,
  given: GithubApp,
  store: Pick<AccountStore, "prepare" | "add">,
): Promise<CompletedSignIn> {
  await store.prepare(caller.hosts.name);
  const { owner } = await lookUpInstallation(caller, given);
  const { app, installation } = given;
  const addedAt = Date.now();
  const saved = { login: owner, host: caller.hosts.name, app, mode: "exchange" as const, installation, addedAt };
  return { saved, outcome: await store.add(saved) };
}

/** Takes what GitHub's Copilot CLI is signed in with. @throws ProxyError as `signedInToCli` and the store do */
export async function completeCli(
  command: string,
  store: Pick<AccountStore, "prepare" | "add">,
): Promise<CompletedSignIn> {
  const { login, host } = await signedInToCli(command);
  await store.prepare(host);
  // A service has another PATH than the person who signs in.
  const path = Bun.which(command) ?? command;
  const saved = { login, host, app: "copilot-cli", mode: "direct" as const, command: path, addedAt: Date.now() };
  return { saved, outcome: await store.add(saved) };
}

/** The person has approved it at GitHub, which is not taken back with what failed here. */
const notKept = ({ kind, words, details }: ProxyError, account: SavedAccount) =>
  new ProxyError(
    kind,
    inBoth(
      words,
      (why) => `${why} At GitHub the app stays approved until you revoke it at ${revocationPage(account)}.`,
    ),
    details,
  );

/** Retries, so that an approval is not lost if the network or the database fails for a moment. */
async function withRetries<T>(ask: () => Promise<T>, steps: SignInSteps): Promise<T> {
  for (const pause of [1000, 3000, 9000])
    try {
      return await ask();
    } catch (thrown) {
      if (!(thrown instanceof ProxyError) || !["upstream", "timeout", "unable"].includes(thrown.kind)) throw thrown;
      await pauseIn(steps, pause);
    }
  return ask();
}
