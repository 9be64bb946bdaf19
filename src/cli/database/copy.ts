/** `dragoman database copy`: copies everything from the data folder to the database. */

import type { Stores } from "../../books/stores";
import type { Environment } from "../../config/environment";
import { ensurePrivateFolder } from "../../config/files";
import { ProxyError } from "../../lib/errors";
import { plural } from "../../lib/format";
import { createLogger } from "../../lib/logger";
import { type CopyReport, copyStores } from "../../parts/copy";
import { type CopyPlan, planCopy } from "../../parts/copy-plan";
import { openLocalStores } from "../../parts/local-stores";
import { inspectDatabase } from "../../team/inspect";
import { requireNoServer } from "../../team/server";
import { openPostgresStores } from "../../team/stores";
import { findInstance } from "../start/instance-file";
import { say, withProgress } from "../terminal";
import { UsageError } from "../usage-error";

interface CopyOptions {
  environment: Environment;
  /** Count only. */
  dryRun: boolean;
  /** Also into a database that has data of its own. */
  merge: boolean;
}

/** @throws UsageError, or ProxyError `conflict` while a server runs, or if the database has data of its own. */
export async function databaseCopy({ environment, dryRun, merge }: CopyOptions): Promise<number> {
  if (environment.databaseUrl === undefined)
    throw new UsageError("Set DRAGOMAN_DATABASE_URL to the database to copy to.");
  const isNew = await requireStopped(environment);
  const { warn } = createLogger(() => "warn");
  ensurePrivateFolder(environment.home, warn);
  await using from = closing(openLocalStores(environment, { follow: false }));
  // A dry run makes no tables in a new database.
  if (dryRun && isNew) {
    say(...planLines(await planCopy(from.stores, undefined, warn), merge));
    return 0;
  }
  await using into = closing(await openPostgresStores(environment, { follow: false }));
  const plan = await planCopy(from.stores, into.stores, warn);
  if (dryRun) {
    say(...planLines(plan, merge));
    return 0;
  }
  if (plan.others.length > 0 && !merge) throw hasOthers(plan);
  let reported = 0;
  const progress = (requests: number) => {
    if (requests - reported < 50_000) return;
    reported = requests;
    say(`${plural(requests, "request")} so far.`);
  };
  const copy = withProgress("Copying", () => copyStores(from.stores, into.stores, { warn, progress }));
  const copied = await copy.catch((thrown: unknown) => {
    say("Not everything was copied. Run this again: what is in the database already is not added twice.");
    throw thrown;
  });
  say(...reportLines(copied));
  return 0;
}

const closing = <Opened extends Stores>(stores: Opened) => ({ stores, [Symbol.asyncDispose]: () => stores.close() });

/** What a server writes meanwhile would be missing on the other side. @returns Whether the database is new. */
async function requireStopped(environment: Environment): Promise<boolean> {
  const { home } = environment;
  const here = findInstance(home);
  if (here)
    throw new ProxyError(
      "conflict",
      `A dragoman server runs at ${here.url} with the data folder ${home}. Stop it first, then run this again.`,
      { code: "server_running" },
    );
  const { servers, isNew } = await inspectDatabase(environment);
  requireNoServer(servers);
  return isNew;
}

const hasOthers = ({ others }: CopyPlan) =>
  new ProxyError(
    "conflict",
    `Nothing was copied: the database is not empty, and has what the folder does not have: ${others.join(", ")}. Copy to an empty database; or add --merge: what is there stays, except that accounts of both get the token of the folder.`,
    { code: "target_not_empty" },
  );

function planLines({ members, accounts, periods, requests, others }: CopyPlan, merge: boolean): string[] {
  const refused = others.length > 0 && !merge;
  return [
    `To copy to the database: the config, ${plural(members, "member")}, ${plural(accounts, "account")}, what ${plural(periods, "budget period")} used, and ${plural(requests, "request")}.`,
    ...(others.length > 0 ? [`It has what the folder does not have: ${others.join(", ")}.`] : []),
    refused ? "It would be refused; --merge allows it. Nothing was changed." : "Nothing was changed.",
  ];
}

function reportLines({ config, members, accounts, skipped, periods, requests }: CopyReport): string[] {
  const configs = {
    copied: "the config",
    same: "the config (it was there already)",
    kept: "not the config, because there is another one",
  };
  const counts = [
    plural(members, "member"),
    plural(accounts, "account"),
    `what ${plural(periods, "budget period")} used`,
  ];
  const parts = [configs[config], ...counts];
  return [
    `Copied to the database: ${parts.join(", ")}, and ${plural(requests, "request")}.`,
    ...skipped.map((which) => `Not copied: ${which}`),
    "Nothing was removed. Now start the servers with the new setting.",
  ];
}
