/** Finds out whether a pooler gives each transaction another connection of the database. */
import { ProxyError } from "../lib/errors";
import type { Postgres } from "./connection";

/** Whether a connection is used by others too can only be seen when it is: how often that is tried. */
const tries = 3;

/**
 * The leader's lock needs a connection that belongs to this server alone: with others' it would fail in silence.
 * @throws ProxyError if a pooler in its transaction mode leads to the database and no direct address is set.
 */
export async function requireOwnConnection(postgres: Postgres): Promise<void> {
  if (!(await sharesConnections(postgres))) return;
  throw new ProxyError(
    "invalid_request",
    "A pooler such as PgBouncer gives this server another connection for each transaction, but the lock by which one server leads needs one of its own: set DRAGOMAN_DATABASE_DIRECT_URL to an address of Postgres itself, or of a pooler in session mode.",
    { code: "pooled_connection" },
  );
}

async function sharesConnections(postgres: Postgres): Promise<boolean> {
  for (let count = 0; count < tries; count += 1) {
    const mark = crypto.randomUUID();
    // Without parameters: a pooler may not know statements that were prepared.
    await postgres.askDirect((sql) =>
      sql.unsafe(`SELECT set_config('dragoman.connection', '${mark}', false)`).simple(),
    );
    const [row] = (await postgres.ask((sql) =>
      sql.unsafe("SELECT current_setting('dragoman.connection', true) AS mark").simple(),
    )) as { mark: string | null }[];
    if (row?.mark === mark) return true;
  }
  return false;
}
