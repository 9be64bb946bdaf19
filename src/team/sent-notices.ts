/** The notices that a team was sent, in Postgres: each is sent once, whichever server leads. */
import { type SentNotices, triedEvery, triedFor } from "../books/notices/sent-notices";
import type { Postgres } from "./connection";

interface TeamSentNotices extends SentNotices {
  /** Notes that these were sent elsewhere. */
  takeOver(ids: readonly string[]): Promise<void>;
}

export const postgresSentNotices = (postgres: Postgres): TeamSentNotices => ({
  claim: async (ids) => [
    ...(await postgres.ask(
      // A row that was inserted has no older version.
      (sql) => sql<
        { id: string; isNew: boolean; delivered: string[] }[]
      >`INSERT INTO dragoman.notices AS old (id, is_open)
        SELECT jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb), true
        ON CONFLICT (id) DO UPDATE SET tried_at = now() WHERE old.is_open
          AND old.sent_at > now() - make_interval(secs => ${triedFor / 1_000})
          AND old.tried_at < now() - make_interval(secs => ${triedEvery / 1_000})
        RETURNING id, xmax = 0 AS "isNew", delivered`,
    )),
  ],
  note: async (deliveries) => {
    await postgres.ask(
      (sql) => sql`UPDATE dragoman.notices AS old SET delivered = new.delivered, is_open = NOT new."isDone"
        FROM jsonb_to_recordset(${JSON.stringify(deliveries)}::text::jsonb)
          AS new (id text, delivered jsonb, "isDone" boolean)
        WHERE old.id = new.id AND old.is_open`,
    );
  },
  takeOver: async (ids) => {
    await postgres.ask(
      (sql) => sql`INSERT INTO dragoman.notices (id)
        SELECT jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb) ON CONFLICT DO NOTHING`,
    );
  },
});
