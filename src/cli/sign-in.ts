/** Signs in at a terminal: shows the page and the code, waits, and reports the account. */

import { setTimeout as wait } from "node:timers/promises";
import { openAccount } from "../accounts/account";
import type { AccountStore, SavedAccount } from "../accounts/account-store";
import { fetchLogin } from "../accounts/github";
import { type Hosts, hostsFor, type SignInApp } from "../accounts/hosts";
import { type ShownCode, signIn } from "../accounts/sign-in";
import { accountUsageItem } from "../api/usage";
import type { Environment } from "../config/environment";
import { asProxyError, ProxyError } from "../errors";
import { entryOf } from "../json";
import { createLogger } from "../logger";
import { copyToClipboard } from "./clipboard";
import { remainingInWords, resetInWords, unitNames } from "./format-usage";
import { openBrowser } from "./open-browser";
import { atTerminal, bold, confirm, countdown, interrupted, say } from "./terminal";

export interface SignInOptions {
  version: string;
  environment: Environment;
  store: AccountStore;
  app: SignInApp;
  /** An enterprise's own GitHub. */
  enterpriseHost?: string;
}

/**
 * Runs the sign-in and saves the account.
 * @throws ProxyError with the reason of a failure, or the signal's reason
 */
export async function signInPerson(options: SignInOptions, signal: AbortSignal): Promise<void> {
  const { app, version, store } = options;
  const hosts = hostsFor(options.enterpriseHost, options.environment);
  await store.prepare(hosts.name);
  const others = store.load();
  if (others.length > 0)
    say(
      "Use only your own accounts, each with its own Copilot plan: GitHub's terms do not allow shared accounts, and allow one free account per person.",
    );
  say(
    `Signing in at ${hosts.name}. ${entryOf(pages, app.name) ?? `GitHub's page will name the app ${app.clientId}.`}`,
    "",
  );
  let stop = () => {};
  try {
    const caller = { hosts, version, signal };
    const show = (code: ShownCode) => {
      stop = showCode(code);
    };
    const githubToken = await signIn({ ...caller, app, show });
    const login = await withRetries(() => fetchLogin(caller, githubToken, app.mode), signal);
    stop();
    const saved = { login, host: hosts.name, app: app.name, mode: app.mode, githubToken, addedAt: Date.now() };
    const outcome = await store.add(saved);
    say(`Signed in as ${bold(login)}${outcome === "replaced" ? ", whose sign-in is renewed" : ""}.`);
    say(await describeAccount(saved, hosts, options));
  } finally {
    stop();
  }
}

/** GitHub's page does not name dragoman, so this is printed in advance. */
const pages: Record<string, string> = {
  vscode:
    "GitHub's page will name GitHub's own Copilot plugin for editors, not dragoman: Copilot accepts tokens of such an app only.",
  opencode: "GitHub's page will name opencode, not dragoman, because dragoman signs in with that app.",
};

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

/** Retries, so that an approval is not lost if the network fails for a moment. */
async function withRetries<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (const pause of [1000, 3000, 9000])
    try {
      return await ask();
    } catch (thrown) {
      if (!(thrown instanceof ProxyError) || !["upstream", "timeout"].includes(thrown.kind)) throw thrown;
      await wait(pause, undefined, { signal });
    }
  return ask();
}

/** Whether the account can use Copilot, and its remaining quota, in one sentence. */
async function describeAccount(saved: SavedAccount, hosts: Hosts, { version }: SignInOptions): Promise<string> {
  // The sentence reports errors, so the log must not repeat them.
  const logger = createLogger(
    () => "error",
    () => {},
  );
  const account = openAccount(saved, { hosts, version, logger });
  try {
    await account.session();
  } catch (thrown) {
    return `The account is saved, but cannot be used yet. ${asProxyError(thrown).message}`;
  }
  const [usage] = (await accountUsageItem([account])).accounts;
  if (!usage || usage.unit === "unknown")
    return "The account is saved and ready. GitHub does not report its remaining quota.";
  const left = `Remaining ${unitNames[usage.unit]}: ${remainingInWords(usage)}; the quota resets on ${resetInWords(usage)}`;
  return `The account is saved and ready. Plan: ${usage.plan ?? "unknown"}. ${left}.`;
}

/** For a server without an account, beside its work: it listens all the while. */
export async function offerSignIn(options: SignInOptions): Promise<void> {
  const signal = interrupted();
  try {
    if (!(await confirm("No account is signed in. Sign in to GitHub now?", true, signal))) return;
    await signInPerson(options, signal);
    say("dragoman can serve requests now.");
  } catch (thrown) {
    if (!signal.aborted) say(`${asProxyError(thrown).message} Run \`dragoman auth\` to try again.`);
  }
}
