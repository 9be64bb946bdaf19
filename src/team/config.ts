/** The config in Postgres: one sealed text for all servers. It has no file, so nothing is edited by hand. */
import type { SQL, TransactionSQL } from "bun";
import type { Awaitable } from "../awaitable";
import { type Config, parseConfig } from "../config/schema";
import { type ConfigStore, changedMeanwhile, type Listener, plannedChange, type Stored } from "../config/store";
import { asProxyError } from "../errors";
import { announceChange, type Changes } from "./changes";
import type { Postgres } from "./connection";
import type { Seals } from "./seal";
import { holdSealKey } from "./seal-rotation";
import { aboutConfig } from "./sealed-columns";

interface ConfigRow {
  sealed_body: Uint8Array;
  revision: number;
}

/** Reads the config, which is empty at first, and follows it from now on. @throws ProxyError */
export async function openPostgresConfig(postgres: Postgres, seals: Seals, changes: Changes): Promise<ConfigStore> {
  let stored: Stored = {};
  let current = parseConfig(stored);
  let revision = 0;
  let fault: string | undefined;
  let listener: Listener | undefined;

  const readRow = (row: ConfigRow | undefined): { revision: number; stored: Stored } =>
    row
      ? { revision: row.revision, stored: JSON.parse(seals.open(row.sealed_body, aboutConfig)) }
      : { revision: 0, stored: {} };

  const hold = (next: { revision: number; stored: Stored }, config: Config) => {
    const before = current;
    ({ stored, revision } = next);
    [current, fault] = [config, undefined];
    const members = (Object.keys(config) as (keyof Config)[]).filter(
      (member) => !Bun.deepEquals(config[member], before[member]),
    );
    if (members.length > 0) listener?.changed(members, false);
  };

  const select = async (sql: SQL) =>
    (await sql<ConfigRow[]>`SELECT sealed_body, revision::float8 AS revision FROM dragoman.config`)[0];
  /** Changes are made one after the other, also the first one, when there is no row to lock. */
  const lock = (sql: TransactionSQL) => sql`SELECT pg_advisory_xact_lock(hashtextextended('dragoman config', 0))`;

  /** A failover has lost what this server knows, such as that a key was revoked, and nobody has changed the config since. */
  const writeAgain = () =>
    postgres.transact(async (sql) => {
      await lock(sql);
      const present = readRow(await select(sql));
      if (present.revision < revision) await write(sql, stored);
    });

  const read = async (since: number): Promise<number> => {
    let next = readRow(await postgres.ask(select));
    if (since === 0 && next.revision < revision) {
      await writeAgain();
      next = readRow(await postgres.ask(select));
    } else if (since > 0 && next.revision <= revision) return revision;
    try {
      hold(next, parseConfig(next.stored));
    } catch (thrown) {
      // A server of a newer version has set a key that this one does not know.
      fault = `The config in the database has an error for this version: ${asProxyError(thrown).message}`;
      listener?.refused(fault);
    }
    return next.revision;
  };

  const write = async (sql: TransactionSQL, body: Stored): Promise<number> => {
    await holdSealKey(sql, seals);
    const sealed = seals.seal(JSON.stringify(body), aboutConfig);
    const next = await announceChange(sql, "config");
    await sql`INSERT INTO dragoman.config (sealed_body, seal_key_id, revision) VALUES (${sealed}, ${seals.keyId}, ${next})
      ON CONFLICT (singleton) DO UPDATE SET sealed_body = excluded.sealed_body, seal_key_id = excluded.seal_key_id,
      revision = excluded.revision`;
    return next;
  };

  changes.follow("config", await read(0), read);
  return {
    get current() {
      return current;
    },
    get stored() {
      return stored;
    },
    get revision() {
      return String(revision);
    },
    get fault() {
      return fault;
    },
    waiting: [],
    async change(patch, { revision: expected, check } = {}) {
      const next = await postgres.transact(async (sql) => {
        await lock(sql);
        const present = readRow(await select(sql));
        if (expected !== undefined && expected !== String(present.revision)) throw changedMeanwhile();
        const planned = plannedChange(present.stored, patch);
        check?.(planned.config);
        if (Bun.deepEquals(planned.stored, present.stored)) return { ...planned, revision: present.revision };
        return { ...planned, revision: await write(sql, planned.stored) };
      });
      if (next.revision > revision) hold(next, next.config);
    },
    reload: (): Awaitable<void> => changes.catchUp("config"),
    follow(given) {
      listener = given;
    },
    close() {},
  };
}
