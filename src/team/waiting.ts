/** The lines of waiting requests of all servers, so that the oldest goes first whichever server holds it. */
import type { SharedLines } from "../accounts/waiting-room";
import type { Postgres } from "./connection";

/** Seconds after which the requests of a server that does not keep them are gone with it. */
const goneAfter = 15;

/** Seconds by which a message may be late: one that is ready so soon keeps its turn before others that came after it. */
const lateBy = 2;

/** @param server The id of this server. */
export const postgresLines = (postgres: Postgres, server: string): SharedLines => ({
  async join({ id, line, waitedMs, readyInMs }) {
    await postgres.ask(
      (sql) => sql`INSERT INTO dragoman.waiting (request_id, server, line, joined_at, ready_at)
        VALUES (${id}, ${server}, ${line}, now() - make_interval(secs => ${waitedMs / 1000}),
          now() + make_interval(secs => ${readyInMs / 1000}))
        ON CONFLICT (request_id) DO NOTHING`,
    );
  },
  async move(id, readyInMs) {
    await postgres.ask(
      (
        sql,
      ) => sql`UPDATE dragoman.waiting SET ready_at = now() + make_interval(secs => ${readyInMs / 1000}), seen_at = now()
        WHERE request_id = ${id}`,
    );
  },
  async leave(id) {
    await postgres.ask((sql) => sql`DELETE FROM dragoman.waiting WHERE request_id = ${id}`);
  },
  async keep(waiters) {
    await postgres.ask(
      (sql) => sql`INSERT INTO dragoman.waiting (request_id, server, line, joined_at, ready_at)
        SELECT id, ${server}::uuid, line, now() - make_interval(secs => "waitedMs" / 1000),
          now() + make_interval(secs => "readyInMs" / 1000)
        FROM json_to_recordset(${JSON.stringify(waiters)}::text::json)
          AS given(id text, line text, "waitedMs" float8, "readyInMs" float8)
        -- The message of a limit that ended earlier may have been lost.
        ON CONFLICT (request_id) DO UPDATE SET seen_at = now(), ready_at = excluded.ready_at`,
    );
  },
  async first(line, count) {
    const rows = await postgres.ask(
      (sql) => sql<{ id: string }[]>`SELECT request_id AS id FROM dragoman.waiting
        WHERE line = ${line} AND ready_at <= now() + make_interval(secs => ${lateBy}) AND seen_at > now() - make_interval(secs => ${goneAfter})
        ORDER BY joined_at, request_id LIMIT ${count}`,
    );
    return new Set(rows.map(({ id }) => id));
  },
});
