/** Tables that each server has in memory: it reads all rows at its start, and then what is newer. */
import type { Awaitable } from "../awaitable";
import type { StoreParts } from "./parts";
import type { FollowedTable } from "./schema";

type Parts = Pick<StoreParts, "postgres" | "changes">;

/**
 * Reads all rows, and follows them from now on.
 * @param columns In SQL.
 * @param take Called with the rows that changed, in the order of their changes. If they are all that there are, others are gone.
 * @throws ProxyError
 */
export async function followRows<Row>(
  { postgres, changes }: Parts,
  table: FollowedTable,
  columns: string,
  take: (rows: Row[], areAll: boolean) => Awaitable<void>,
): Promise<void> {
  const select = `SELECT ${columns}, revision::float8 AS revision FROM dragoman.${table} WHERE revision > $1 ORDER BY revision`;
  const read = async (since: number): Promise<number> => {
    const rows = (await postgres.ask((sql) => sql.unsafe(select, [since]))) as (Row & { revision: number })[];
    await take(rows, since === 0);
    return rows.at(-1)?.revision ?? since;
  };
  changes.follow(table, await read(0), read);
}

/** A row that is removed stays in its table, with a mark. */
type Removable<Row> = Row & { removed: boolean };

interface HeldTableOptions<Row, Value> {
  table: FollowedTable;
  /** In SQL, without `removed`, and the condition for that. */
  columns: string;
  isRemoved: string;
  keyOf(row: Row): string;
  /** Names a row, and none that takes its place after it was removed; by default its key. */
  nameOf?(row: Row): string;
  /** Undefined for a row that cannot be used. */
  read(row: Row): Value | undefined;
  changed(): void;
  /** Called with rows of which a failover has lost that they were removed. */
  removeAgain(rows: Row[]): Promise<unknown>;
}

/** The rows of a table by their keys. What was ever removed stays so. */
export class HeldTable<Row, Value> extends Map<string, Value> {
  readonly #removed = new Set<string>();
  #wasUsed = false;

  /** @throws ProxyError */
  async hold(parts: Parts, options: HeldTableOptions<Row, Value>): Promise<void> {
    const { table, keyOf, nameOf = keyOf, read, changed, removeAgain } = options;
    const columns = `${options.columns}, ${options.isRemoved} AS removed`;
    await followRows<Removable<Row>>(parts, table, columns, async (rows, areAll) => {
      if (areAll) this.clear();
      this.#wasUsed ||= rows.length > 0;
      const returned = rows.filter((row) => !row.removed && this.wasRemoved(nameOf(row)));
      for (const row of rows) {
        if (row.removed) this.#removed.add(nameOf(row));
        const value = this.wasRemoved(nameOf(row)) ? undefined : read(row);
        if (value === undefined) this.delete(keyOf(row));
        else this.set(keyOf(row), value);
      }
      if (rows.length > 0 || areAll) changed();
      if (returned.length > 0) await removeAgain(returned);
    });
  }

  wasRemoved(name: string): boolean {
    return this.#removed.has(name);
  }

  /** There ever was a row. */
  get wasUsed(): boolean {
    return this.#wasUsed;
  }
}
