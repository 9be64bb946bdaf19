/** Looks at the database without changing anything in it. */
import type { Environment } from "../../config/environment";
import { keyIdOf } from "../seal";
import { connectPostgres } from "./connection";
import { schemaVersion } from "./schema";

export interface DatabaseReport {
  /** Postgres' own version. */
  server: string;
  /** The database has no tables of dragoman yet. */
  isNew: boolean;
  /** Its schema is too new for this version. */
  isTooNew: boolean;
  /** The key that seals is not set here. */
  lacksKey: boolean;
  accounts: number;
  /** Servers that were alive within the last minute. */
  servers: number;
}

/** @throws ProxyError, or Postgres' own error. */
export async function inspectDatabase({
  databaseUrl: url,
  databaseDirectUrl: directUrl,
  sealKey,
  sealKeyNext,
}: Environment): Promise<DatabaseReport> {
  const postgres = connectPostgres({ url: url!, directUrl });
  try {
    return await postgres.ask(async (sql) => {
      const [version] = await sql<{ server_version: string }[]>`SHOW server_version`;
      const [found] = await sql<{ made: boolean }[]>`SELECT to_regclass('dragoman.schema') IS NOT NULL AS made`;
      const report = { server: version!.server_version, isNew: !found!.made };
      if (report.isNew) return { ...report, isTooNew: false, lacksKey: false, accounts: 0, servers: 0 };
      const [row] = await sql<Row[]>`SELECT
        (SELECT compatible_with FROM dragoman.schema) AS compatible_with,
        (SELECT key_id FROM dragoman.seal) AS key_id,
        (SELECT count(*)::int FROM dragoman.accounts WHERE removed_at_ms IS NULL) AS accounts,
        (SELECT count(*)::int FROM dragoman.replicas WHERE beat_at > now() - interval '1 minute') AS servers`;
      const { compatible_with, key_id, accounts, servers } = row!;
      const keyIds = [sealKey, sealKeyNext].flatMap((key) => (key ? [keyIdOf(key)] : []));
      return {
        ...report,
        isTooNew: compatible_with > schemaVersion,
        lacksKey: key_id !== null && !keyIds.includes(key_id),
        accounts,
        servers,
      };
    });
  } finally {
    await postgres.close();
  }
}

interface Row {
  compatible_with: number;
  key_id: string | null;
  accounts: number;
  servers: number;
}
