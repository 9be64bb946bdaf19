/** Tables that each server has in memory: it reads all rows at its start, and then what is newer. */
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
  take: (rows: Row[], areAll: boolean) => void,
): Promise<void> {
  const select = `SELECT ${columns}, revision::float8 AS revision FROM dragoman.${table} WHERE revision > $1 ORDER BY revision`;
  const read = async (since: number): Promise<number> => {
    const rows = (await postgres.requests.ask((sql) => sql.unsafe(select, [since]))) as (Row & { revision: number })[];
    take(rows, since === 0);
    return rows.at(-1)?.revision ?? since;
  };
  changes.follow(table, await read(0), read);
}

/** A row that is removed stays in its table, so that its removal has a revision. */
type Removable<Row> = Row & { removed: boolean };

interface HeldTableOptions<Row, Value> {
  table: FollowedTable;
  /** In SQL, without `removed`, and the condition for that. */
  columns: string;
  isRemoved: string;
  keyOf(row: Row): string;
  /** Undefined for a row that cannot be used. */
  read(row: Row): Value | undefined;
  changed(): void;
}

/** The rows of a table that were not removed, by their keys. */
export class HeldTable<Row, Value> extends Map<string, Value> {
  #wasUsed = false;

  /** @throws ProxyError */
  async hold(parts: Parts, options: HeldTableOptions<Row, Value>): Promise<void> {
    const { table, keyOf, read, changed } = options;
    const columns = `${options.columns}, ${options.isRemoved} AS removed`;
    await followRows<Removable<Row>>(parts, table, columns, (rows, areAll) => {
      if (areAll) this.clear();
      this.#wasUsed ||= rows.length > 0;
      for (const row of rows) {
        const value = row.removed ? undefined : read(row);
        if (value === undefined) this.delete(keyOf(row));
        else this.set(keyOf(row), value);
      }
      if (rows.length > 0 || areAll) changed();
    });
  }

  /** There ever was a row. */
  get wasUsed(): boolean {
    return this.#wasUsed;
  }
}
