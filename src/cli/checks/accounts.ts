/** Each account as GitHub reports it now: sign-in, quota, models, and models that its policy disables. No request costs anything. */

import { isPlainFact, warningInWords, warningsOf } from "../../books/changes/warnings";
import { parseConfig } from "../../config/schema";
import { asProxyError } from "../../lib/errors";
import { plural, unitNames } from "../../lib/format";
import { singleLimit } from "../../lib/net/out/clock";
import { Account } from "../../people/accounts/account";
import {
  openAccountStore,
  type SavedAccount,
  secretOf,
  type TemporaryAccount,
} from "../../people/accounts/account-store";
import { bindingsIn } from "../../people/accounts/bindings";
import { fetchLogin, type GithubCaller } from "../../people/accounts/github";
import { isOfInstallation } from "../../people/accounts/github-tokens";
import { hostsFor, type Mode } from "../../people/accounts/hosts";
import { Pool } from "../../people/accounts/pool";
import { temporaryAccount } from "../../people/accounts/temporary-account";
import { autoId, hasOnlyAuto, isAutoName, picksNone } from "../../proxy/upstream/copilot/auto-model";
import { openCopilot } from "../../proxy/upstream/copilot/copilot";
import { Catalogue } from "../../proxy/upstream/models/catalogue";
import type { Model } from "../../proxy/upstream/models/model";
import { accountUsageItem } from "../../routes/usage";
import { remainingInWords, resetInWords } from "../format-usage";
import { isDemoRunning } from "../running-server";
import { about, type CheckContext, type Finding } from "./check";

/** The time limit of one call, in milliseconds. The token exchange and the model list are two calls in sequence. */
const timeoutMs = 4_000;

const policyPage = "https://github.com/settings/copilot/features";

/** The saved accounts, with a sentence for each file that cannot be read. */
export function savedAccounts({ environment, logger }: CheckContext): { accounts: SavedAccount[]; faults: string[] } {
  const faults: string[] = [];
  const listening = { ...logger, warn: (line: string) => void faults.push(line) };
  const accounts = openAccountStore(environment.accountsFolder, listening, { tighten: false }).load();
  for (const account of accounts) logger.conceal(secretOf(account));
  return { accounts, faults };
}

export async function checkAccounts(subject: CheckContext): Promise<Finding[]> {
  // Those in a database belong to many people, and `dragoman auth ls` lists them.
  if (subject.environment.databaseUrl !== undefined) return [];
  const { environment, enterpriseHost } = subject;
  const accounts = about("accounts");
  const faults: Finding[] = [];
  const tried = <Found>(work: () => Found): Found | undefined => {
    try {
      return work();
    } catch (thrown) {
      faults.push(accounts.fail(asProxyError(thrown).message));
      return undefined;
    }
  };
  const temporary = tried(() => temporaryAccount(environment));
  const saved = tried(() => savedAccounts(subject)) ?? { accounts: [], faults: [] };
  faults.push(...saved.faults.map((fault) => accounts.fail(fault, "Sign in again with `dragoman auth`.")));
  const subjects: Promise<Finding>[] = saved.accounts.map((account) => examine(account, account.host, subject));
  if (temporary) subjects.unshift(examine(temporary, enterpriseHost, subject));
  if (subjects.length === 0 && faults.length === 0) {
    const hasProviders = Object.keys(subject.config?.providers ?? {}).length > 0;
    if (isDemoRunning(environment))
      return [
        accounts.warn("No GitHub account is signed in; the running demo needs none.", "For yours: `dragoman auth`."),
      ];
    return hasProviders
      ? [accounts.warn("No GitHub account is signed in: only other providers can serve.", "Run `dragoman auth`.")]
      : [accounts.fail("No GitHub account is signed in.", "Run `dragoman auth`.")];
  }
  return [...faults, ...(await Promise.all(subjects))];
}

type Known = SavedAccount | TemporaryAccount;

async function examine(known: Known, host: string | undefined, subject: CheckContext): Promise<Finding> {
  const { environment, version, logger } = subject;
  const hosts = hostsFor(host, environment);
  const account = new Account(known, { hosts, version, logger, timeoutMs });
  const variable = "installation" in known ? "DRAGOMAN_APP_ID" : "DRAGOMAN_GITHUB_TOKEN";
  const named = "temporary" in known ? `account of ${variable}` : `account ${known.login}`;
  const finding = about(hosts.name === "github.com" ? named : `${named} at ${hosts.name}`);
  try {
    const { mode } = await account.copilotToken();
    const caller = { hosts, version, timeoutMs };
    const [login, quota, models] = await Promise.all([
      loginOf(known, caller, mode),
      quotaOf(account),
      modelsOf(account, subject),
    ]);
    const renamed =
      login !== undefined && "login" in known && login.toLowerCase() !== known.login.toLowerCase()
        ? `Its GitHub name is now ${login}`
        : undefined;
    const off = models.filter(({ enabled }) => !enabled).map(({ id }) => id);
    const usable = hasOnlyAuto(account, { picksNone: picksNone(models.filter(({ id }) => !isAutoName(id))) })
      ? `its plan offers Auto only: tools have to ask for the model \`${autoId}\``
      : `${plural(models.length - off.length, "model")} can be used`;
    const summary = `Signed in; ${quota.summary}; ${usable}.`;
    const { state } = account;
    if (state.name === "failed")
      return finding.fail(
        state.reason ?? summary,
        // The reason says what to do.
        state.suspended ? undefined : "Run `dragoman auth`.",
      );
    if (renamed)
      return finding.warn(`${summary} ${renamed}.`, "Sign in again with `dragoman auth` to save the new name.");
    const [warning] = warningsOf(models).filter((each) => !isPlainFact(each));
    if (warning) return finding.warn(`${summary} ${warningInWords(warning)}`);
    if (off.length > 0)
      return finding.warn(
        `${summary} Its policy disables ${plural(off.length, "model")}: ${listed(off)}.`,
        `Enable what you need at ${policyPage}; for a company's account, its administrator does that.`,
      );
    return quota.doubtful ? finding.warn(summary) : finding.ok(summary);
  } catch (thrown) {
    return finding.fail(asProxyError(thrown).message);
  }
}

/** What GitHub calls the person now. Undefined where nobody signed in here: an installation, the Copilot CLI. */
const loginOf = async (known: Known, caller: GithubCaller, mode: Mode): Promise<string | undefined> =>
  "githubToken" in known && !isOfInstallation(known.githubToken)
    ? fetchLogin(caller, known.githubToken, mode)
    : undefined;

/** The models of all accounts whose lists can be fetched; none if no list can. */
export async function listedModels(subject: CheckContext): Promise<Model[]> {
  const { environment, enterpriseHost, version, logger } = subject;
  const known: [Known, string | undefined][] = savedAccounts(subject).accounts.map((account) => [
    account,
    account.host,
  ]);
  const temporary = temporaryAccount(environment);
  if (temporary) known.push([temporary, enterpriseHost]);
  const lists = await Promise.allSettled(
    known.map(([account, host]) =>
      modelsOf(new Account(account, { hosts: hostsFor(host, environment), version, logger, timeoutMs }), subject),
    ),
  );
  return lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []));
}

async function quotaOf(account: Account): Promise<{ summary: string; doubtful: boolean }> {
  const usage = (await accountUsageItem([account])).accounts[0]!;
  if (usage.quota_error !== null) return { summary: `its quota is unknown (${usage.quota_error})`, doubtful: true };
  const left = `${remainingInWords(usage)} ${unitNames[usage.unit]} left, reset ${resetInWords(usage)}`;
  return { summary: left, doubtful: usage.state !== "ready" };
}

/** The models, requested as the server does, with the config's headers if the config can be read. */
function modelsOf(account: Account, { config, version, logger }: CheckContext): Promise<Model[]> {
  const accounts = () => [account];
  const copilot = openCopilot({ current: config ?? parseConfig({}) }, version);
  const pool = new Pool({ accounts, freeInOrder: () => true, now: Date.now });
  const clocks = { now: Date.now, monotonic: () => performance.now() };
  return new Catalogue({ accounts, pool, copilot, logger, limits: singleLimit(timeoutMs), ...clocks }).models();
}

function listed(names: string[]): string {
  const shown = names.slice(0, 8);
  const more = names.length - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Keys and projects that are bound to accounts which are not signed in. */
export async function checkBindings(subject: CheckContext): Promise<Finding[]> {
  const bindings = subject.config ? bindingsIn(subject.config) : [];
  if (bindings.length === 0) return [];
  const finding = about("bindings");
  const known = new Set(savedAccounts(subject).accounts.map(({ host, login }) => `${host}/${login}`.toLowerCase()));
  const findings = bindings.flatMap(({ of, accounts }) => {
    const missing = accounts.filter((name) => !known.has(name));
    if (missing.length === 0) return [];
    const names = missing.map((name) => `\`${name}\``).join(", ");
    return finding.warn(
      `The ${of} is bound to ${names}, which ${missing.length === 1 ? "is" : "are"} not signed in.`,
      missing.length === accounts.length
        ? "Its requests are refused. Sign in with `dragoman auth add`, or change the binding in the config."
        : "Sign in with `dragoman auth add`, or take it out of the config.",
    );
  });
  return findings.length > 0 ? findings : [finding.ok(`${plural(bindings.length, "binding")} of keys and projects.`)];
}
