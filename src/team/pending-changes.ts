/** Config changes that wait for confirmation, in Postgres: any server shows and saves what another one prepared. */
import {
  maxPendingChanges,
  newPendingId,
  type PendingChange,
  type PendingChanges,
  pendingChangeMs,
} from "../config/pending-changes";
import { sha256 } from "../net/credentials";
import { isAwayError } from "./away";
import type { Postgres } from "./connection";
import type { Seals } from "./seal";
import { holdSealKey } from "./seal-rotation";
import { aboutPendingChange } from "./sealed-columns";

/** What is sealed: the form has the secrets that were typed. */
interface SealedChange extends Omit<PendingChange, "form"> {
  form: string;
}

export function openPostgresPendingChanges(postgres: Postgres, seals: Seals): PendingChanges {
  return {
    async put({ form, ...change }) {
      const id = newPendingId();
      const digest = sha256(id);
      const body: SealedChange = { ...change, form: form.toString() };
      await postgres.transact(async (sql) => {
        const { keyId } = await holdSealKey(sql, seals);
        const sealed = seals.seal(JSON.stringify(body), aboutPendingChange(digest.toHex()));
        await sql`INSERT INTO dragoman.pending_changes (sha256, sealed_body, seal_key_id, expires_at)
          VALUES (${digest}, ${sealed}, ${keyId}, now() + make_interval(secs => ${pendingChangeMs / 1_000}))`;
        await sql`DELETE FROM dragoman.pending_changes WHERE expires_at <= now() OR sha256 IN
          (SELECT sha256 FROM dragoman.pending_changes ORDER BY expires_at DESC OFFSET ${maxPendingChanges})`;
      });
      return id;
    },
    async get(id) {
      if (!id) return undefined;
      const digest = sha256(id);
      const [row] = await postgres.ask(
        (sql) => sql<{ sealed_body: Uint8Array }[]>`SELECT sealed_body FROM dragoman.pending_changes
          WHERE sha256 = ${digest} AND expires_at > now()`,
      );
      if (!row) return undefined;
      const read: SealedChange = JSON.parse(seals.open(row.sealed_body, aboutPendingChange(digest.toHex())));
      return { ...read, form: new URLSearchParams(read.form) };
    },
    async drop(id) {
      try {
        await postgres.ask((sql) => sql`DELETE FROM dragoman.pending_changes WHERE sha256 = ${sha256(id)}`);
      } catch (thrown) {
        // It expires by itself, and its revision is that of a config which has changed since.
        if (!isAwayError(thrown)) throw thrown;
      }
    },
  };
}
