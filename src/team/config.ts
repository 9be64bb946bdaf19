/** The config in Postgres: one sealed text for all servers. It has no file, so nothing is edited by hand. */
import type { SQL, TransactionSQL } from "bun";
import { type Config, parseConfig } from "../config/schema";
import {
  type ChangeOptions,
  type ConfigStore,
  changedMeanwhile,
  type Listener,
  plannedChange,
  type Stored,
} from "../config/store";
import type { Awaitable } from "../lib/awaitable";
import { asProxyError } from "../lib/errors";
import { aboutConfig } from "../lib/seals";
import { announceChange } from "./changes";
import type { StoreParts } from "./parts";
import { holdSealKey } from "./seal-key";

type Parts = Omit<StoreParts, "logger">;

interface ConfigRow {
  sealed_body: Uint8Array;
  revision: number;
}

const select = async (sql: SQL) =>
  (await sql<ConfigRow[]>`SELECT sealed_body, revision::float8 AS revision FROM dragoman.config`)[0];
/** Changes are made one after the other, also the first one, when there is no row to lock. */
const lock = (sql: TransactionSQL) => sql`SELECT pg_advisory_xact_lock(hashtextextended('dragoman config', 0))`;

export class TeamConfig implements ConfigStore {
  readonly #parts: Parts;
  #stored: Stored = {};
  #current = parseConfig({});
  #revision = 0;
  #fault: string | undefined;
  #listener: Listener | undefined;
  readonly waiting = [];

  /** Reads the config, which is empty at first, and follows it from now on. @throws ProxyError */
  static async open(parts: Parts): Promise<TeamConfig> {
    const config = new TeamConfig(parts);
    parts.changes.follow("config", await config.#read(0), (since) => config.#read(since));
    return config;
  }

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  get current(): Config {
    return this.#current;
  }

  get stored(): Stored {
    return this.#stored;
  }

  get revision(): string {
    return String(this.#revision);
  }

  get fault(): string | undefined {
    return this.#fault;
  }

  async change(patch: Stored, { revision: expected }: ChangeOptions = {}): Promise<void> {
    const next = await this.#parts.postgres.transact(async (sql) => {
      await lock(sql);
      const present = this.#open(await select(sql));
      if (expected !== undefined && expected !== String(present.revision)) throw changedMeanwhile();
      const planned = plannedChange(present.stored, patch);
      if (Bun.deepEquals(planned.stored, present.stored)) return { ...planned, revision: present.revision };
      return { ...planned, revision: await this.#write(sql, planned.stored) };
    });
    if (next.revision > this.#revision) this.#hold(next, next.config);
  }

  reload(): Awaitable<void> {
    return this.#parts.changes.catchUp("config");
  }

  follow(listener: Listener): void {
    this.#listener = listener;
  }

  close(): void {}

  #open(row: ConfigRow | undefined): { revision: number; stored: Stored } {
    if (!row) return { revision: 0, stored: {} };
    return { revision: row.revision, stored: JSON.parse(this.#parts.seals.open(row.sealed_body, aboutConfig)) };
  }

  #hold(next: { revision: number; stored: Stored }, config: Config): void {
    const before = this.#current;
    this.#stored = next.stored;
    this.#revision = next.revision;
    this.#current = config;
    this.#fault = undefined;
    const members = (Object.keys(config) as (keyof Config)[]).filter(
      (member) => !Bun.deepEquals(config[member], before[member]),
    );
    if (members.length > 0) this.#listener?.changed(members, false);
  }

  async #read(since: number): Promise<number> {
    const next = this.#open(await this.#parts.postgres.requests.ask(select));
    if (since > 0 && next.revision <= this.#revision) return this.#revision;
    try {
      this.#hold(next, parseConfig(next.stored));
    } catch (thrown) {
      // A server of a newer version has set a key that this one does not know.
      this.#fault = `The config in the database has an error for this version: ${asProxyError(thrown).message}`;
      this.#listener?.refused(this.#fault);
    }
    return next.revision;
  }

  async #write(sql: TransactionSQL, body: Stored): Promise<number> {
    await holdSealKey(sql, this.#parts.seals);
    const sealed = this.#parts.seals.seal(JSON.stringify(body), aboutConfig);
    const next = await announceChange(sql, "config");
    await sql`INSERT INTO dragoman.config (sealed_body, revision) VALUES (${sealed}, ${next})
      ON CONFLICT (singleton) DO UPDATE SET sealed_body = excluded.sealed_body, revision = excluded.revision`;
    return next;
  }
}
