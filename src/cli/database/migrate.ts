/** `dragoman migrate`: copies everything between the data folder and a database. */
import type { Environment } from "../../config/environment";
import { ensurePrivateFolder } from "../../config/files";
import { plural } from "../../format";
import { createLogger } from "../../logger";
import { type CopyReport, copyStores } from "../../storage/copy";
import { openStores } from "../../storage/open";
import { say } from "../terminal";
import { UsageError } from "../usage-error";

/** @param to `folder`, `database`, or the address of a database. */
export async function migrateTo(environment: Environment, to: string): Promise<number> {
  const { source, target, name } = direction(environment, to);
  const logger = createLogger(() => "warn");
  const warn = (sentence: string) => logger.warn(sentence);
  ensurePrivateFolder(environment.home, warn);
  const from = await openStores(source, { follow: false });
  try {
    const into = await openStores(target, { follow: false });
    try {
      let reported = 0;
      const progress = (requests: number) => {
        if (requests - reported < 50_000) return;
        reported = requests;
        say(`${plural(requests, "request")} so far.`);
      };
      say(...reportLines(await copyStores(from, into, { logger, warn, progress }), name));
      return 0;
    } finally {
      await into.close();
    }
  } finally {
    await from.close();
  }
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

function reportLines({ config, accounts, skipped, periods, requests }: CopyReport, name: string): string[] {
  const configs = {
    copied: "the config",
    same: "the config (it was there already)",
    kept: "not the config, because there is another one",
  };
  const parts = [configs[config], plural(accounts, "account"), `what ${plural(periods, "budget period")} used`];
  return [
    `Copied to ${name}: ${parts.join(", ")}, and ${plural(requests, "request")}.`,
    ...skipped.map((login) => `Not copied: ${login}, because it belongs to somebody else there.`),
    "Nothing was removed. Run it again to copy what has come meanwhile; then start the servers with the new setting.",
  ];
}
