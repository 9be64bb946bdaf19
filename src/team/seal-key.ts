/** The database names the key that seals its secrets. That is changed while no server runs. */
import type { SQL, TransactionSQL } from "bun";
import { ProxyError } from "../lib/errors";
import { plural } from "../lib/format";
import { aboutConfig, aboutCopilotToken, aboutSignIn, aboutToken, aboutTokenSecret, type Seals } from "../lib/seals";
import { loginTimes } from "../people/keys/logins";
import type { Postgres } from "./connection";
import { aliveServers, requireNoServer } from "./server";

/**
 * The first server says with which key secrets are sealed.
 * @returns The secrets of access tokens, the present one first. Read it at each use.
 * @throws ProxyError if this process does not have that key.
 */
export async function agreeOnKey(postgres: Postgres, seals: Seals): Promise<() => Buffer[]> {
  const [row] = await postgres.ask(async (sql) => {
    await sql`INSERT INTO dragoman.seal (key_id) VALUES (${seals.keyId}) ON CONFLICT DO NOTHING`;
    return sql<{ key_id: string; before: Uint8Array | null; seconds: number | null }[]>`SELECT key_id,
      token_secret_before AS before, extract(epoch FROM token_secret_until - now())::float8 AS seconds FROM dragoman.seal`;
  });
  const { key_id, before, seconds } = row!;
  seals.require(key_id);
  const present = seals.derived(tokenPurpose);
  if (!before) return () => [present];
  const until = performance.now() + seconds! * 1_000;
  const earlier = Buffer.from(seals.open(before, aboutTokenSecret), "hex");
  return () => (performance.now() < until ? [present, earlier] : [present]);
}

const tokenPurpose = "access tokens";

/** To be called before something is sealed: the key does not change before the transaction has ended. @throws ProxyError */
export async function holdSealKey(sql: SQL, seals: Seals): Promise<void> {
  const [row] = await sql<{ key_id: string }[]>`SELECT key_id FROM dragoman.seal FOR SHARE`;
  seals.require(row!.key_id);
}

interface SealedColumn {
  table: string;
  key: string;
  column: string;
  about(key: string): string;
}

const sealedColumns: readonly SealedColumn[] = [
  { table: "config", key: "singleton::text", column: "sealed_body", about: () => aboutConfig },
  { table: "accounts", key: "key", column: "sealed_token", about: aboutToken },
  { table: "copilot_tokens", key: "account", column: "sealed_token", about: aboutCopilotToken },
  { table: "sign_ins", key: "encode(sha256, 'hex')", column: "sealed_body", about: aboutSignIn },
];

/** Milliseconds. */
const resealMs = 10 * 60_000;

/**
 * Seals everything with another key, or changes nothing. Tools that have signed in stay so: their tokens, which last an hour, are
 * taken for as long as they would have been.
 * @returns How many secrets there were.
 * @throws ProxyError `conflict` while a server runs, or if a secret cannot be opened.
 */
export function reseal(postgres: Postgres, from: Seals, to: Seals): Promise<number> {
  return postgres.transact(async (sql) => {
    // Who seals something meanwhile waits.
    const [row] = await sql<{ key_id: string }[]>`SELECT key_id FROM dragoman.seal FOR UPDATE`;
    if (row) from.require(row.key_id);
    requireNoServer(await aliveServers(sql));
    const broken: string[] = [];
    let count = 0;
    for (const column of sealedColumns) count += await resealColumn(sql, column, from, to, broken);
    if (broken.length > 0) throw unopened(broken);
    const secret = to.seal(from.derived(tokenPurpose).toString("hex"), aboutTokenSecret);
    await sql`UPDATE dragoman.seal SET key_id = ${to.keyId}, token_secret_before = ${secret},
      token_secret_until = now() + make_interval(secs => ${loginTimes.access})`;
    return count;
  }, resealMs);
}

/** @param broken The names of what cannot be opened are added. @returns How many secrets there are. */
async function resealColumn(
  sql: TransactionSQL,
  { table, key, column, about }: SealedColumn,
  from: Seals,
  to: Seals,
  broken: string[],
): Promise<number> {
  const rows = (await sql.unsafe(
    `SELECT ${key} AS key, ${column} AS sealed FROM dragoman.${table} WHERE ${column} IS NOT NULL FOR UPDATE`,
  )) as { key: string; sealed: Uint8Array }[];
  const resealed = rows.flatMap(({ key, sealed }) => {
    try {
      return [{ row_key: key, sealed: to.seal(from.open(sealed, about(key)), about(key)).toString("hex") }];
    } catch (thrown) {
      if (!(thrown instanceof ProxyError)) throw thrown;
      broken.push(`${table} ${key}`);
      return [];
    }
  });
  await sql.unsafe(
    `UPDATE dragoman.${table} SET ${column} = decode(given.sealed, 'hex')
      FROM json_to_recordset($1::text::json) AS given(row_key text, sealed text) WHERE ${key} = row_key`,
    [JSON.stringify(resealed)],
  );
  return rows.length;
}

const unopened = (names: readonly string[]) =>
  new ProxyError(
    "conflict",
    `Nothing was changed: ${plural(names.length, "secret")} cannot be opened with DRAGOMAN_SEAL_KEY: ${names.join(", ")}. Sign such an account in again, or remove it, and run this again; a sign-in is over within an hour.`,
    { code: "seal_broken" },
  );
