/** Looks at the database without changing anything in it. */
import type { Environment } from "../config/environment";
import { keyIdOf } from "../lib/seals";
import type { KnownServer } from "../people/keys/team";
import { Postgres } from "./connection";
import { schemaVersion } from "./schema";
import { aliveServers } from "./server";
import { otherSettings } from "./settings";

export interface DatabaseReport {
  /** Postgres' own version. */
  server: string;
  /** The database has no tables of dragoman yet. */
  isNew: boolean;
  /** Its schema is too new for this version. */
  isTooNew: boolean;
  /** Settings of its connections that are not as they must be. */
  otherSettings: Record<string, string>;
  /** The key that seals is not set here. */
  lacksKey: boolean;
  accounts: number;
  /** Servers that were alive within the last minute. */
  servers: KnownServer[];
  members: number;
  /** The names of members without an account. */
  withoutAccount: string[];
}

/** @throws ProxyError, or Postgres' own error. */
export async function inspectDatabase({
  databaseUrl: url,
  databaseDirectUrl: directUrl,
  sealKey,
}: Environment): Promise<DatabaseReport> {
  const postgres = new Postgres({ url: url!, directUrl });
  try {
    const other = await otherSettings(postgres);
    return await postgres.ask(async (sql) => {
      const [found] = await sql<Pick<DatabaseReport, "server" | "isNew">[]>`SELECT
        current_setting('server_version') AS server, to_regclass('dragoman.schema') IS NULL AS "isNew"`;
      const report = { ...found!, otherSettings: other };
      if (report.isNew) return { ...report, ...nothing };
      const [row] = await sql<{ compatible_with: number; key_id: string | null; accounts: number }[]>`SELECT
        (SELECT compatible_with FROM dragoman.schema) AS compatible_with,
        (SELECT key_id FROM dragoman.seal) AS key_id,
        (SELECT count(*)::int FROM dragoman.accounts) AS accounts`;
      const { compatible_with, key_id, accounts } = row!;
      const members = await sql<{ name: string; has_account: boolean }[]>`SELECT name, EXISTS (SELECT 1
        FROM dragoman.accounts WHERE member = members.id) AS has_account
        FROM dragoman.members WHERE removed_at_ms IS NULL ORDER BY name`;
      return {
        ...report,
        isTooNew: compatible_with > schemaVersion,
        lacksKey: key_id !== null && !(sealKey && keyIdOf(sealKey) === key_id),
        accounts,
        servers: await aliveServers(sql),
        members: members.length,
        withoutAccount: members.filter(({ has_account }) => !has_account).map(({ name }) => name),
      };
    });
  } finally {
    await postgres.close();
  }
}

const nothing = { isTooNew: false, lacksKey: false, accounts: 0, servers: [], members: 0, withoutAccount: [] };
