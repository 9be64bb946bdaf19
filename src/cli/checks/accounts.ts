/** Each account as GitHub sees it now: its sign-in, its quota, its models and those its policy has off. Nothing paid is asked. */
import { type Account, openAccount } from "../../accounts/account";
import { openAccountStore, type SavedAccount } from "../../accounts/account-store";
import { fetchLogin } from "../../accounts/github";
import { hostsFor } from "../../accounts/hosts";
import { openPool } from "../../accounts/pool";
import { accountUsageItem } from "../../api/usage";
import { parseConfig } from "../../config/schema";
import { lookAtConfig } from "../../config/store";
import { asProxyError } from "../../errors";
import { within } from "../../net/clock";
import { openCatalogue } from "../../upstream/catalogue";
import { openCopilot } from "../../upstream/copilot";
import type { Model } from "../../upstream/model";
import { remainingInWords, resetInWords, unitNames } from "../format-usage";
import { about, type CheckContext, counted, type Finding } from "./check";

/** Milliseconds that one call may take: exchange and model list come one after the other. */
const timeoutMs = 4_000;

const policyPage = "https://github.com/settings/copilot/features";

/** With a sentence for each file that does not read. */
export function savedAccounts({ environment, logger }: CheckContext): { accounts: SavedAccount[]; faults: string[] } {
  const faults: string[] = [];
  const listening = { ...logger, warn: (line: string) => void faults.push(line) };
  const accounts = openAccountStore(environment.accountsFolder, listening, { tighten: false }).load();
  for (const { githubToken } of accounts) logger.conceal(githubToken);
  return { accounts, faults };
}

export async function checkAccounts(subject: CheckContext): Promise<Finding[]> {
  const { environment, enterpriseHost } = subject;
  const accounts = about("accounts");
  const saved = (() => {
    try {
      return savedAccounts(subject);
    } catch (thrown) {
      return { accounts: [], faults: [asProxyError(thrown).message] };
    }
  })();
  const faults = saved.faults.map((fault) => accounts.fail(fault, "Sign in again with `dragoman auth`."));
  const subjects: Promise<Finding>[] = saved.accounts.map((account) => examine(account, account.host, subject));
  if (environment.githubToken)
    subjects.unshift(examine({ temporary: true, githubToken: environment.githubToken }, enterpriseHost, subject));
  if (subjects.length === 0 && faults.length === 0)
    return [accounts.fail("No GitHub account is signed in.", "Run `dragoman auth`.")];
  return [...faults, ...(await Promise.all(subjects))];
}

type Known = SavedAccount | { temporary: true; githubToken: string };

async function examine(known: Known, host: string | undefined, subject: CheckContext): Promise<Finding> {
  const { environment, version, logger } = subject;
  const hosts = hostsFor(host, environment);
  const account = openAccount(known, { hosts, version, logger, timeoutMs: timeoutMs });
  const named = "temporary" in known ? "account of DRAGOMAN_GITHUB_TOKEN" : `account ${known.login}`;
  const finding = about(hosts.name === "github.com" ? named : `${named} at ${hosts.name}`);
  try {
    const session = await account.session();
    const caller = { hosts, version, timeoutMs };
    const [login, quota, models] = await Promise.all([
      fetchLogin(caller, known.githubToken, session.mode),
      quotaOf(account),
      modelsOf(account, subject),
    ]);
    const renamed =
      "login" in known && login.toLowerCase() !== known.login.toLowerCase()
        ? `Its GitHub name is now ${login}`
        : undefined;
    const off = models.filter(({ enabled }) => !enabled).map(({ id }) => id);
    const told = `Signed in; ${quota.told}; ${counted(models.length - off.length, "model")} can be used.`;
    const { name, reason, suspended } = account.state;
    if (name === "failed")
      return finding.fail(reason ?? told, suspended ? "Read GitHub's message first." : "Run `dragoman auth`.");
    if (renamed) return finding.warn(`${told} ${renamed}.`, "Sign in again with `dragoman auth` to save the new name.");
    if (off.length > 0)
      return finding.warn(
        `${told} Its policy disables ${counted(off.length, "model")}: ${listed(off)}.`,
        `Enable what you need at ${policyPage}; for a company's account, its administrator does that.`,
      );
    return quota.doubtful ? finding.warn(told) : finding.ok(told);
  } catch (thrown) {
    return finding.fail(asProxyError(thrown).message);
  }
}

async function quotaOf(account: Account): Promise<{ told: string; doubtful: boolean }> {
  const usage = (await accountUsageItem([account])).accounts[0]!;
  if (usage.quota_error !== null) return { told: `its quota is unknown (${usage.quota_error})`, doubtful: true };
  const left = `${remainingInWords(usage)} ${unitNames[usage.unit]} left, reset ${resetInWords(usage)}`;
  return { told: left, doubtful: usage.state !== "ready" };
}

/** As the server would ask, with the config's own headers where the config reads. */
function modelsOf(account: Account, { environment, version, logger }: CheckContext): Promise<Model[]> {
  const accounts = () => [account];
  const copilot = openCopilot({ current: readConfig(environment.configFile) }, version);
  const pool = openPool({ accounts, freeInOrder: () => true, now: Date.now });
  return openCatalogue(accounts, pool, copilot, logger, within(timeoutMs)).models();
}

function readConfig(path: string) {
  try {
    return lookAtConfig(path)?.config ?? parseConfig({});
  } catch {
    return parseConfig({}); // another check says why
  }
}

function listed(names: string[]): string {
  const shown = names.slice(0, 8);
  const more = names.length - shown.length;
  return `${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
