/** Signs in at a terminal: shows the page and the code, waits, and reports the account. */

import type { Environment } from "../config/environment";
import { asProxyError } from "../lib/errors";
import { unitNames } from "../lib/format";
import { quietLogger } from "../lib/logger";
import { Account } from "../people/accounts/account";
import type { AccountStore, SavedAccount } from "../people/accounts/account-store";
import { completeApp, completeCli, completeSignIn } from "../people/accounts/complete-sign-in";
import { consentNotice, type Hosts, hostsFor, ownAccountsOnly, type SignInApp } from "../people/accounts/hosts";
import type { GithubApp } from "../people/accounts/installation";
import type { ShownCode } from "../people/accounts/sign-in";
import { accountUsageItem } from "../routes/usage";
import { copyToClipboard, openBrowser } from "./desktop";
import { remainingInWords, resetInWords } from "./format-usage";
import { atTerminal, bold, confirm, countdown, interrupted, say, withProgress } from "./terminal";

interface SignInOptions {
  version: string;
  environment: Environment;
  store: AccountStore;
  app: SignInApp;
  /** An enterprise's own GitHub. */
  enterpriseHost?: string;
}

/**
 * Runs the sign-in and saves the account.
 * @returns Whether the account can serve requests.
 * @throws ProxyError with the reason of a failure, or the signal's reason
 */
export async function signInPerson(options: SignInOptions, signal: AbortSignal): Promise<boolean> {
  const { app, version, store } = options;
  const hosts = hostsFor(options.enterpriseHost, options.environment);
  await store.prepare(hosts.name);
  const others = store.load();
  if (others.length > 0) say(ownAccountsOnly);
  say(`Signing in at ${hosts.name}. ${consentNotice(app)}`, "");
  let stop = () => {};
  try {
    const caller = { hosts, version, signal };
    const show = (code: ShownCode) => {
      stop = showCode(code);
    };
    const { saved, outcome } = await completeSignIn({ ...caller, app, show }, store);
    stop();
    say(`Signed in as ${bold(saved.login)}${outcome === "replaced" ? ", whose sign-in is renewed" : ""}.`);
    const { usable, sentence } = await withProgress("Asking for its quota", () =>
      describeAccount(saved, hosts, options),
    );
    say(sentence);
    return usable;
  } finally {
    stop();
  }
}

/** Signs in a GitHub App and saves it. @throws ProxyError with what is missing at GitHub */
export async function signInAppOf(
  given: GithubApp,
  options: Pick<SignInOptions, "version" | "environment" | "store" | "enterpriseHost">,
): Promise<void> {
  const { version, environment, store, enterpriseHost } = options;
  const hosts = hostsFor(enterpriseHost, environment);
  const { saved, outcome } = await withProgress("Asking GitHub", () => completeApp({ hosts, version }, given, store));
  say(
    `The App ${given.app} is signed in: its requests are billed to ${bold(saved.login)}.${outcome === "replaced" ? " It takes the place of the one that was signed in there before." : ""}`,
    (await withProgress("Asking for its first token", () => describeAccount(saved, hosts, options))).sentence,
  );
}

/** Takes what the Copilot CLI is signed in with. @throws ProxyError with what is missing */
export async function signInCli(
  command: string,
  options: Pick<SignInOptions, "version" | "environment" | "store">,
): Promise<void> {
  const { saved, outcome } = await withProgress("Asking the Copilot CLI", () => completeCli(command, options.store));
  say(
    `The Copilot CLI is signed in as ${bold(saved.login)}${outcome === "replaced" ? ", which takes the place of that sign-in here" : ""}. This is experimental: a release of the CLI may end it.`,
    (
      await withProgress("Asking for its quota", () =>
        describeAccount(saved, hostsFor(saved.host, options.environment), options),
      )
    ).sentence,
  );
}

/** @returns Removes the countdown line. */
function showCode({ userCode, address, mayOpen, warning, expiresIn }: ShownCode): () => void {
  if (warning) say(bold(warning));
  if (!atTerminal()) {
    say(`Open ${address} and enter the code ${userCode} within ${Math.round(expiresIn / 60)} minutes.`);
    return () => {};
  }
  const copied = copyToClipboard(userCode) ? " (copied to your clipboard)" : "";
  const opened = mayOpen && openBrowser(address) ? "Your browser opens" : "Open";
  say("", `${opened} ${bold(address)}: enter the code ${bold(userCode)}${copied} and approve.`, "");
  return countdown(expiresIn, (left) => `Waiting: ${left} left; press Ctrl-C to cancel.`);
}

/** Whether the account can use Copilot, and its remaining quota, in one sentence. */
async function describeAccount(saved: SavedAccount, hosts: Hosts, { version }: Pick<SignInOptions, "version">) {
  // The sentence reports errors, so the log must not repeat them.
  const logger = quietLogger();
  const account = new Account(saved, { hosts, version, logger });
  try {
    await account.copilotToken();
  } catch (thrown) {
    const sentence = `The account is saved, but cannot be used yet. ${asProxyError(thrown).message}`;
    return { usable: false, sentence };
  }
  if (account.kind === "app")
    return { usable: true, sentence: "The account is saved and ready. GitHub does not say what is left." };
  const [usage] = (await accountUsageItem([account])).accounts;
  if (!usage || usage.unit === "unknown")
    return { usable: true, sentence: "The account is saved and ready. GitHub does not report its remaining quota." };
  const left = `Remaining ${unitNames[usage.unit]}: ${remainingInWords(usage)}; the quota resets on ${resetInWords(usage)}`;
  return { usable: true, sentence: `The account is saved and ready. Plan: ${usage.plan ?? "unknown"}. ${left}.` };
}

/** For a server without an account, beside its work: it listens all the while. */
export async function offerSignIn(options: SignInOptions): Promise<void> {
  const signal = interrupted();
  try {
    if (!(await confirm("No account is signed in. Sign in to GitHub now?", true, signal))) return;
    if (await signInPerson(options, signal)) say("dragoman can serve requests now.");
  } catch (thrown) {
    if (!signal.aborted) say(`${asProxyError(thrown).message} Run \`dragoman auth\` to try again.`);
  }
}
