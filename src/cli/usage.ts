/** `dragoman usage`: the remaining quota, from the running server or, if none is running, from GitHub. */
import { setTimeout as wait } from "node:timers/promises";
import type { z } from "zod";
import { accountSchema } from "../admin/api/schemas";
import type { Environment } from "../config/environment";
import { asProxyError } from "../lib/errors";
import { quietLogger } from "../lib/logger";
import { Account } from "../people/accounts/account";
import { hostsFor } from "../people/accounts/hosts";
import { temporaryAccount } from "../people/accounts/temporary-account";
import { lineFields } from "../routes/line-fields";
import { usageListSchema, usageSchema } from "../routes/schemas";
import { accountUsageItem, iso, type UsageItem } from "../routes/usage";
import { usageLine } from "../routes/usage-line";
import { usageLines } from "./format-usage";
import { ask, askAsOwner, demoNotice, demoOf, itemsOf, type RunningServer, readAs, serverOf } from "./running-server";
import { interrupted, print, printJson, say, withProgress } from "./terminal";
import { UsageError } from "./usage-error";
import { withStores } from "./with-stores";

interface UsageOptions {
  version: string;
  environment: Environment;
  json: boolean;
  /** Prints one line in this format for status bars; see `usageLine`. */
  format?: string;
  /** Seconds after which the usage is printed again, until a signal. */
  watch?: number;
}

/** The answer of `GET /usage`. */
interface Report {
  accounts: UsageItem[];
}

/** @throws UsageError for a field that there is not */
export async function usage(options: UsageOptions): Promise<number> {
  for (const [, name = ""] of options.format?.matchAll(/\{(\w+)\}/g) ?? [])
    if (!lineFields.some((field) => field === name))
      throw new UsageError(`--format: there is no field {${name}}; there are {${lineFields.join("}, {")}}.`);
  if (options.watch === undefined) return showUsage(options);
  const signal = interrupted();
  while (!signal.aborted) {
    // At a terminal, each table replaces the one before it.
    if (process.stdout.isTTY && !options.json && options.format === undefined)
      process.stdout.write("\u001b[2J\u001b[H");
    // A server that is being restarted is there again a moment later.
    await showUsage(options).catch((thrown) => say(asProxyError(thrown).message));
    await wait(options.watch * 1000, undefined, { signal }).catch(() => {});
  }
  return 0;
}

async function showUsage(options: UsageOptions): Promise<number> {
  const report = (await askServer(serverOf(options.environment))) ?? (await askBesideServers(options));
  if (options.json) printJson(report);
  else if (options.format !== undefined) print(usageLine(report.accounts, options.format, Date.now()));
  else if (report.accounts.length === 0) say("No GitHub account is signed in. Run `dragoman auth` to sign in.");
  else print(...usageLines(report.accounts));
  return 0;
}

/** Asks GitHub about the saved accounts. Without accounts, asks a running demo. */
async function askBesideServers(options: UsageOptions): Promise<Report> {
  const own = await withProgress("Asking GitHub", () => askGithub(options));
  if (own.accounts.length > 0) return own;
  const demo = await askServer(demoOf(options.environment));
  if (demo) say(demoNotice);
  return demo ?? own;
}

/** The usage of each saved account, and of the token in the environment, from GitHub. */
export async function askGithub(
  options: Pick<UsageOptions, "version" | "environment" | "watch">,
  savedOnly = false,
): Promise<Report> {
  const { environment, version } = options;
  // Failures are part of the report.
  const logger = quietLogger();
  const waking = (host?: string) => ({ hosts: hostsFor(host, environment), version, logger });
  const saved = await withStores(environment, async ({ accounts }) => accounts.load());
  const accounts: Account[] = saved.map((each) => new Account(each, waking(each.host)));
  const temporary = savedOnly ? undefined : temporaryAccount(environment);
  if (temporary) accounts.unshift(new Account(temporary, waking(environment.enterpriseHost)));
  // An account may have a quota and still get no token: its state then says so. Repeated reports do not ask each time.
  if (options.watch === undefined) await Promise.all(accounts.map((account) => account.copilotToken().catch(() => {})));
  return accountUsageItem(accounts);
}

/** Undefined if no server is running. @throws ProxyError if the server answers with an error */
async function askServer(server: RunningServer | undefined): Promise<Report | undefined> {
  return (
    server &&
    usageOfServer(server).catch((thrown) => {
      if (asProxyError(thrown).details.code !== "upstream_unreachable") throw thrown;
      return undefined;
    })
  );
}

/** What the server knows of its accounts. */
export async function usageOfServer(server: RunningServer): Promise<Report> {
  const answer = await askAsOwner(server, "/api/admin/accounts");
  if (answer === undefined) return readAs(usageListSchema(), await ask(server, "/usage"), server);
  const { items } = readAs(itemsOf(accountSchema), answer, server);
  return { accounts: items.map(usageOf) };
}

/** An account of the admin API as `GET /usage` shows it. */
const usageOf = (item: z.infer<typeof accountSchema>): UsageItem => {
  const { account_id: id, account_type: plan, runtime, until_ms, reset_at_ms, updated_at_ms, ...common } = item;
  const times = { until: iso(until_ms), reset_at: iso(reset_at_ms), updated_at: iso(updated_at_ms) };
  return usageSchema().parse({ id, plan, ...runtime, ...common, ...times });
};
