/** The database says which key seals its secrets. That can be changed to another key while servers run. */
import type { SQL, TransactionSQL } from "bun";
import { ProxyError } from "../errors";
import type { Postgres } from "./connection";
import { aliveServers } from "./replica";
import { aboutConfig, aboutSession, aboutSignIn, aboutToken, keyIdOf, type Seals } from "./seal";

/** The first server says with which key secrets are sealed. @throws ProxyError if this process does not have that key. */
export async function agreeOnKey(postgres: Postgres, seals: Seals): Promise<void> {
  const rows = await postgres.ask(async (sql) => {
    await sql`INSERT INTO dragoman.seal (key_id) VALUES (${seals.keyId}) ON CONFLICT DO NOTHING`;
    return sql<{ key_id: string }[]>`SELECT key_id FROM dragoman.seal`;
  });
  seals.use(rows[0]!.key_id);
}

interface SealedTable {
  name: string;
  key: string;
  column: string;
  about(key: string): string;
}

const sealedTables: readonly SealedTable[] = [
  { name: "config", key: "singleton::text", column: "sealed_body", about: () => aboutConfig },
  { name: "accounts", key: "key", column: "sealed_token", about: aboutToken },
  { name: "sessions", key: "account", column: "sealed_token", about: aboutSession },
  { name: "sign_ins", key: "encode(sha256, 'hex')", column: "sealed_body", about: aboutSignIn },
];

const rowsAtOnce = 200;

interface Rotation {
  /** How many secrets were sealed anew. */
  count: number;
  /** Secrets that no key opens, such as `accounts github.com/ben`. They stay as they are, and are useless under either key. */
  unopened: string[];
}

/**
 * Seals everything with another key. Servers that have both keys go on meanwhile.
 * @throws ProxyError `conflict` if a running server does not have the key.
 */
export async function rotateSeals(postgres: Postgres, seals: Seals, next: Uint8Array): Promise<Rotation> {
  const keyId = keyIdOf(next);
  await requireEverywhere(postgres, keyId);
  await postgres.ask((sql) => sql`UPDATE dragoman.seal SET key_id = ${keyId}`);
  seals.use(keyId);
  const rotation: Rotation = { count: 0, unopened: [] };
  for (const table of sealedTables) {
    const broken: string[] = [];
    for (let found = rowsAtOnce; found === rowsAtOnce; ) {
      const before = broken.length;
      found = await postgres.transact((sql) => reseal(sql, seals, table, broken));
      rotation.count += found - (broken.length - before);
    }
    rotation.unopened.push(...broken.map((key) => `${table.name} ${key}`));
  }
  return rotation;
}

/** How many secrets are sealed with another key than the one that seals now. */
export async function countOldSeals(sql: SQL): Promise<number> {
  const counts = sealedTables.map(
    ({ name }) => `(SELECT count(*) FROM dragoman.${name} WHERE seal_key_id <> (SELECT key_id FROM dragoman.seal))`,
  );
  const [row] = (await sql.unsafe(`SELECT (${counts.join(" + ")})::float8 AS count`)) as { count: number }[];
  return row!.count;
}

async function requireEverywhere(postgres: Postgres, keyId: string): Promise<void> {
  const lacking = (await postgres.ask(aliveServers)).filter(({ sealKeys }) => !sealKeys.includes(keyId)).length;
  if (lacking === 0) return;
  throw new ProxyError(
    "conflict",
    `${lacking} of the running servers ${lacking === 1 ? "does" : "do"} not have the new key yet, and could not open what it seals. Restart them with DRAGOMAN_SEAL_KEY_NEXT first; a stopped server is forgotten after a minute.`,
    { code: "seal_key_missing" },
  );
}

/** @param broken The keys of rows that are passed over; those that no key opens are added. @returns How many rows there were. */
async function reseal(
  sql: TransactionSQL,
  seals: Seals,
  { name, key, column, about }: SealedTable,
  broken: string[],
): Promise<number> {
  const rows = (await sql.unsafe(
    `SELECT ${key} AS key, ${column} AS sealed FROM dragoman.${name} WHERE seal_key_id <> $1
       AND ${key} NOT IN (SELECT jsonb_array_elements_text($2::text::jsonb)) LIMIT ${rowsAtOnce} FOR UPDATE`,
    [seals.keyId, JSON.stringify(broken)],
  )) as { key: string; sealed: Uint8Array }[];
  const resealed = rows.flatMap((row) => {
    let text: string;
    try {
      text = seals.open(row.sealed, about(row.key));
    } catch (thrown) {
      if (!(thrown instanceof ProxyError)) throw thrown;
      broken.push(row.key);
      return [];
    }
    return [{ row_key: row.key, sealed: seals.seal(text, about(row.key)).toString("hex") }];
  });
  await sql.unsafe(
    `UPDATE dragoman.${name} SET ${column} = decode(sealed, 'hex'), seal_key_id = $1
      FROM json_to_recordset($2::text::json) AS given(row_key text, sealed text) WHERE ${key} = row_key`,
    [seals.keyId, JSON.stringify(resealed)],
  );
  return rows.length;
}

/** The key that seals now. It does not change before the transaction has ended. */
export async function holdSealKey(sql: SQL, seals: Seals): Promise<Seals> {
  const [row] = await sql<{ key_id: string }[]>`SELECT key_id FROM dragoman.seal FOR SHARE`;
  seals.use(row!.key_id);
  return seals;
}
