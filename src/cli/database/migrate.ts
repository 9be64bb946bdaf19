/** `dragoman migrate`: copies everything between the data folder and a database. */
import type { Environment } from "../../config/environment";
import { ensurePrivateFolder } from "../../config/files";
import { ProxyError } from "../../errors";
import { plural } from "../../format";
import { createLogger } from "../../logger";
import { openStores } from "../../open-stores";
import type { Stores } from "../../stores";
import { type CopyReport, copyStores } from "../../team/copy";
import { type CopyPlan, openWholeHistory, planCopy } from "../../team/copy-plan";
import { inspectDatabase } from "../../team/inspect";
import { findInstance } from "../start/instance-file";
import { say, withProgress } from "../terminal";
import { UsageError } from "../usage-error";

interface MigrateOptions {
  environment: Environment;
  /** `folder`, `database`, or the address of a database. */
  to: string;
  /** Count only. */
  dryRun: boolean;
  /** Also into a target that has data of its own. */
  merge: boolean;
}

/** @throws UsageError, or ProxyError `conflict` while a server runs, or if the target has data of its own. */
export async function migrateTo({ environment, to, dryRun, merge }: MigrateOptions): Promise<number> {
  const { source, target, name } = direction(environment, to);
  const isNew = await requireStopped(environment.home, source, target);
  const { warn } = createLogger(() => "warn");
  ensurePrivateFolder(environment.home, warn);
  if (source.databaseUrl !== undefined && !dryRun) await writeWaiting(source, warn);
  await using from = await opened(source);
  // A dry run makes no tables in a new database.
  if (dryRun && isNew) {
    say(...planLines(await planCopy(from.stores, undefined, warn), name, merge));
    return 0;
  }
  await using into = await opened(target);
  const plan = await planCopy(from.stores, into.stores, warn);
  if (dryRun) {
    say(...planLines(plan, name, merge));
    return 0;
  }
  if (plan.others.length > 0 && !merge) throw hasOthers(plan, name);
  let reported = 0;
  const progress = (requests: number) => {
    if (requests - reported < 50_000) return;
    reported = requests;
    say(`${plural(requests, "request")} so far.`);
  };
  const copied = await withProgress("Copying", () => copyStores(from.stores, into.stores, { warn, progress }));
  say(...reportLines(copied, name));
  return 0;
}

/** What this machine could not write while the database was away has to be there before it is copied. */
async function writeWaiting(source: Environment, warn: (sentence: string) => void): Promise<void> {
  await using from = await opened(source);
  const { stores } = from;
  // Closing the stores writes what waits on the disk.
  openWholeHistory(stores, warn).close();
  stores.openLedger({ now: Date.now, warn }).close();
}

async function opened(environment: Environment): Promise<AsyncDisposable & { stores: Stores }> {
  const stores = await openStores(environment, { follow: false });
  return { stores, [Symbol.asyncDispose]: () => stores.close() };
}

/** What a server writes meanwhile would be missing on the other side. @returns Whether the target is a new database. */
async function requireStopped(home: string, source: Environment, target: Environment): Promise<boolean> {
  const here = findInstance(home);
  if (here)
    throw new ProxyError(
      "conflict",
      `A dragoman server runs at ${here.url} with the data folder ${home}. Stop it first, then run this again.`,
      { code: "server_running" },
    );
  const database = source.databaseUrl === undefined ? target : source;
  const { servers: alive, isNew } = await inspectDatabase(database);
  const servers = alive.length;
  if (servers > 0)
    throw new ProxyError(
      "conflict",
      `${plural(servers, "server")} of the database ${servers === 1 ? "is" : "are"} running. Stop ${servers === 1 ? "it" : "them"} first, then run this again; one that was killed is forgotten after a minute.`,
      { code: "server_running" },
    );
  return isNew && database === target;
}

const hasOthers = ({ others }: CopyPlan, name: string) =>
  new ProxyError(
    "conflict",
    `Nothing was copied: ${name} is not empty, and has what the source does not have: ${others.join(", ")}. Copy to an empty database, or to a new folder (DRAGOMAN_HOME); or add --merge: what is there stays, except that accounts of both get the token of the source.`,
    { code: "target_not_empty" },
  );

const leftOutLines = (names: readonly string[]): string[] =>
  names.length === 0
    ? []
    : [
        `Not copied: ${plural(names.length, "member")} (${names.join(", ")}) with their keys, accounts and requests, because a data folder is one person's.`,
      ];

const idleLines = (names: readonly string[]): string[] =>
  names.length === 0
    ? []
    : [
        `${plural(names.length, "budget")} (${names.join(", ")}) count${names.length === 1 ? "s" : ""} requests of members only, and so nothing in a data folder. ${names.length === 1 ? "It stays" : "They stay"} in the config.`,
      ];

function planLines(
  { accounts, periods, requests, leftOut, idleBudgets, others }: CopyPlan,
  name: string,
  merge: boolean,
): string[] {
  const refused = others.length > 0 && !merge;
  return [
    `To copy to ${name}: the config, ${plural(accounts, "account")}, what ${plural(periods, "budget period")} used, and ${plural(requests, "request")}.`,
    ...leftOutLines(leftOut),
    ...idleLines(idleBudgets),
    ...(others.length > 0 ? [`It has what the source does not have: ${others.join(", ")}.`] : []),
    refused ? "It would be refused; --merge allows it. Nothing was changed." : "Nothing was changed.",
  ];
}

/** The environments of both sides. @throws UsageError */
function direction(environment: Environment, to: string): { source: Environment; target: Environment; name: string } {
  const folder = { ...environment, databaseUrl: undefined };
  const { databaseUrl } = environment;
  if (to === "folder") {
    if (databaseUrl === undefined) throw new UsageError("Set DRAGOMAN_DATABASE_URL to the database to copy from.");
    return { source: environment, target: folder, name: environment.home };
  }
  const url = to === "database" ? databaseUrl : to;
  if (url === undefined) throw new UsageError("Set DRAGOMAN_DATABASE_URL to the database to copy to.");
  if (!/^postgres(?:ql)?:$/.test(URL.parse(url)?.protocol ?? ""))
    throw new UsageError(
      "--to must be folder, database, or the address of a database: postgres://user:password@host/name.",
    );
  return { source: folder, target: { ...environment, databaseUrl: url }, name: "the database" };
}

function reportLines(
  { config, accounts, skipped, leftOut, idleBudgets, periods, requests }: CopyReport,
  name: string,
): string[] {
  const configs = {
    copied: "the config",
    same: "the config (it was there already)",
    kept: "not the config, because there is another one",
  };
  const parts = [configs[config], plural(accounts, "account"), `what ${plural(periods, "budget period")} used`];
  return [
    `Copied to ${name}: ${parts.join(", ")}, and ${plural(requests, "request")}.`,
    ...skipped.map((login) => `Not copied: ${login}, because it belongs to somebody else there.`),
    ...leftOutLines(leftOut),
    ...idleLines(idleBudgets),
    "Nothing was removed. Now start the servers with the new setting.",
  ];
}
