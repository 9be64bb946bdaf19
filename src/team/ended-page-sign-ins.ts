/** The page sign-ins that were ended before their time: each server has them in memory, and follows those of others. */
import type { EndedPageSignIns } from "../people/keys/page-sign-ins";
import { orAway } from "./away";
import { announceChange } from "./changes";
import { followRows } from "./held-table";
import type { StoreParts } from "./parts";

/** Reads all, and follows them from now on. @throws ProxyError */
export async function openEndedPageSignIns(parts: StoreParts): Promise<EndedPageSignIns> {
  /** Digest in hexadecimal → when the sign-in would have expired, Unix ms. */
  const ended = new Map<string, number>();
  const columns = "sha256, until_ms::float8 AS until";
  await followRows<{ sha256: Uint8Array; until: number }>(parts, "ended_page_sign_ins", columns, (rows, areAll) => {
    if (areAll) ended.clear();
    for (const [digest, until] of ended) if (until < Date.now()) ended.delete(digest);
    for (const { sha256, until } of rows) ended.set(sha256.toHex(), until);
  });
  const write = (digest: string, until: number) =>
    parts.postgres.transact(async (sql) => {
      const revision = await announceChange(sql, "ended_page_sign_ins");
      await sql`INSERT INTO dragoman.ended_page_sign_ins (sha256, until_ms, revision)
        VALUES (${Buffer.from(digest, "hex")}, ${until}, ${revision}) ON CONFLICT DO NOTHING`;
    });
  return {
    has: (digest) => ended.has(digest),
    async add(digest, until) {
      await orAway(write(digest, until), "You could not be signed out everywhere.");
      await parts.changes.tryCatchUp("ended_page_sign_ins");
    },
  };
}
