/** The page sign-ins that were ended before their time. A server asks about each cookie, and remembers the answer for a second. */
import { BoundedMap } from "../lib/bounded-map";
import type { EndedPageSignIns } from "../people/keys/page-sign-ins";
import { isAwayError, orAway } from "./away";
import type { Postgres } from "./connection";

/** Milliseconds. */
const rememberMs = 1_000;
const maxRemembered = 10_000;

export function endedPageSignIns(postgres: Postgres): EndedPageSignIns {
  /** By the digests in hexadecimal. Once ended, it stays so. */
  const known = new BoundedMap<string, { hasEnded: boolean; at: number }>(maxRemembered);
  const write = (digest: string, until: number) =>
    postgres.ask(
      (sql) => sql`INSERT INTO dragoman.ended_page_sign_ins (sha256, until_ms)
        VALUES (${Buffer.from(digest, "hex")}, ${until}) ON CONFLICT DO NOTHING`,
    );
  return {
    has: (digest) => known.get(digest)?.hasEnded ?? false,
    async hear(digest) {
      const { hasEnded = false, at: asked = Number.NEGATIVE_INFINITY } = known.get(digest) ?? {};
      const at = performance.now();
      if (hasEnded || at - asked < rememberMs) return;
      try {
        const rows = await postgres.ask(
          (sql) => sql`SELECT 1 FROM dragoman.ended_page_sign_ins WHERE sha256 = ${Buffer.from(digest, "hex")}`,
        );
        known.set(digest, { hasEnded: rows.length > 0, at });
      } catch (thrown) {
        // The cookie says until when it holds, which has to do.
        if (!isAwayError(thrown)) throw thrown;
      }
    },
    async add(digest, until) {
      await orAway(write(digest, until), "You could not be signed out everywhere.");
      known.set(digest, { hasEnded: true, at: performance.now() });
    },
  };
}
