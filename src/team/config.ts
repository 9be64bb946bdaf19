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
import type { StoreParts } from "./parts";
import { holdSealKey } from "./seal-key";
import { lockTable } from "./stamps";

type Parts = Omit<StoreParts, "logger">;

interface ConfigRow {
  sealed_body: Uint8Array;
  revision: string;
}

const select = async (sql: SQL) =>
  (await sql<ConfigRow[]>`SELECT sealed_body, revision::text AS revision FROM dragoman.config`)[0];

/** The revision of a config that nobody has changed yet. */
const none = "0";

export class TeamConfig implements ConfigStore {
  readonly #parts: Parts;
  #stored: Stored = {};
  #current = parseConfig({});
  #revision = none;
  #fault: string | undefined;
  #listener: Listener | undefined;
  readonly waiting = [];

  /** Reads the config, which is empty at first, and follows it from now on. @throws ProxyError */
  static async open(parts: Parts): Promise<TeamConfig> {
    const config = new TeamConfig(parts);
    await parts.stamps.follow("config", () => config.#read());
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
    return this.#revision;
  }

  get fault(): string | undefined {
    return this.#fault;
  }

  async change(patch: Stored, { revision: expected }: ChangeOptions = {}): Promise<void> {
    await this.#parts.postgres.transact(async (sql) => {
      await lockTable(sql, "config");
      const present = this.#open(await select(sql));
      if (expected !== undefined && expected !== present.revision) throw changedMeanwhile();
      const planned = plannedChange(present.stored, patch);
      if (!Bun.deepEquals(planned.stored, present.stored)) await this.#write(sql, planned.stored);
    });
    await this.#parts.stamps.tryCatchUp("config");
  }

  reload(): Awaitable<void> {
    return this.#parts.stamps.catchUp("config");
  }

  follow(listener: Listener): void {
    this.#listener = listener;
  }

  close(): void {}

  #open(row: ConfigRow | undefined): { revision: string; stored: Stored } {
    if (!row) return { revision: none, stored: {} };
    return { revision: row.revision, stored: JSON.parse(this.#parts.seals.open(row.sealed_body, aboutConfig)) };
  }

  #hold(next: { revision: string; stored: Stored }, config: Config): void {
    const [before, fault] = [this.#current, this.#fault];
    this.#stored = next.stored;
    this.#revision = next.revision;
    this.#current = config;
    this.#fault = undefined;
    if (fault !== undefined) this.#listener?.noted("The config in the database is valid for this version again.");
    const members = (Object.keys(config) as (keyof Config)[]).filter(
      (member) => !Bun.deepEquals(config[member], before[member]),
    );
    if (members.length > 0) this.#listener?.changed(members, false);
  }

  async #read(): Promise<void> {
    const next = this.#open(await this.#parts.postgres.requests.ask(select));
    if (next.revision === this.#revision) return;
    try {
      this.#hold(next, parseConfig(next.stored));
    } catch (thrown) {
      // A server of a newer version has set a key that this one does not know.
      this.#fault = `The config in the database has an error for this version: ${asProxyError(thrown).message}`;
      this.#listener?.refused(this.#fault);
    }
  }

  async #write(sql: TransactionSQL, body: Stored): Promise<void> {
    await holdSealKey(sql, this.#parts.seals);
    const sealed = this.#parts.seals.seal(JSON.stringify(body), aboutConfig);
    await sql`INSERT INTO dragoman.config (sealed_body) VALUES (${sealed})
      ON CONFLICT (singleton) DO UPDATE SET sealed_body = excluded.sealed_body, revision = excluded.revision`;
  }
}
