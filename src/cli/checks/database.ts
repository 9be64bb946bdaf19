/** The database of a team: whether it can be reached and used, and whether its secrets can be opened. */
import { ProxyError } from "../../errors";
import { plural } from "../../format";
import { about, type CheckContext, type Finding } from "./check";

export async function checkDatabase({ environment, logger }: CheckContext): Promise<Finding[]> {
  const database = about("database");
  const { databaseUrl, databaseDirectUrl, sealKey } = environment;
  if (databaseUrl === undefined) return [];
  for (const url of [databaseUrl, databaseDirectUrl]) logger.conceal(URL.parse(url ?? "")?.password ?? "");
  if (!sealKey)
    return [
      database.fail(
        "DRAGOMAN_SEAL_KEY is not set, so dragoman does not start with DRAGOMAN_DATABASE_URL.",
        "Set it to 32 random bytes as base64, such as `openssl rand -base64 32` prints.",
      ),
    ];
  const { inspectDatabase } = await import("../../storage/postgres/inspect");
  try {
    const { server, isNew, isTooNew, lacksKey, accounts, servers } = await inspectDatabase(environment);
    const name = `Postgres ${server}`;
    if (Number.parseInt(server, 10) < 15) return [database.fail(`${name} is too old.`, "Use Postgres 15 or newer.")];
    if (isNew) return [database.ok(`${name} can be reached; the first start makes the tables.`)];
    if (isTooNew)
      return [
        database.fail(
          `${name} was changed by a newer dragoman, which this version does not understand.`,
          "Update dragoman.",
        ),
      ];
    if (lacksKey)
      return [
        database.fail(
          `${name} can be reached, but its secrets are sealed with a key that is not set here.`,
          "Set DRAGOMAN_SEAL_KEY to the key that the other servers have.",
        ),
      ];
    return [database.ok(`${name} has ${plural(accounts, "account")}; ${plural(servers, "server")} running.`)];
  } catch (thrown) {
    const cause = thrown instanceof ProxyError ? thrown.details.cause : thrown;
    const reason = cause instanceof Error ? cause.message : String(cause);
    return [database.fail(`The database cannot be reached or used: ${reason}.`, "Check DRAGOMAN_DATABASE_URL.")];
  }
}
