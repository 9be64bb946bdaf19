/**
 * Page sessions in Postgres. Each server holds all of them in memory, so that a page asks the database for a session only if it
 * is not known yet, and follows those that others begin and end.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { isExpired } from "../keys/client-keys";
import type { Members } from "../keys/members";
import {
  type AdminSession,
  maxSessions,
  type NewSession,
  newSessionId,
  type PageSessions,
  sessionLifetimeMs,
} from "../keys/page-sessions";
import { sha256 } from "../net/credentials";
import { orAway } from "./away";
import { announceChange } from "./changes";
import type { Postgres } from "./connection";
import type { StoreParts } from "./parts";

interface SessionParts extends Omit<StoreParts, "logger"> {
  members: Members;
  /** This server's. A session that began with another one does not hold here. */
  adminToken: string | undefined;
}

interface HeldSession {
  member: string | null;
  credential: Buffer | null;
  /** Of the owner's: a server with this one's admin token began it, or one whose owner needed no token. */
  isProven: boolean;
  /** By the monotonic clock of this process, ms. */
  until: number;
  ending: AbortController;
}

interface SessionRow {
  sha256: Uint8Array;
  member: string | null;
  credential: Uint8Array | null;
  ended: boolean;
  remaining: number;
  revision: number;
}

/** Reads all sessions, and follows them from now on. @throws ProxyError */
export async function openPostgresPageSessions(parts: SessionParts): Promise<PageSessions> {
  const { postgres, changes, members } = parts;
  /** By the digest of the id, in hexadecimal. */
  const sessions = new Map<string, HeldSession>();
  /** Those that were ended, and until when they would hold: a failover may have lost it, and then they are ended again. */
  const ended = new Map<string, number>();

  const drop = (key: string) => {
    sessions.get(key)?.ending.abort();
    sessions.delete(key);
  };
  const isGood = (key: string): boolean => {
    const session = sessions.get(key);
    if (session === undefined) return false;
    if (session.until <= performance.now()) {
      drop(key);
      return false;
    }
    if (session.member === null ? session.isProven : memberHolds(members, session)) return true;
    // It is not forgotten: its key may be so new that it is not known here yet.
    session.ending.abort();
    session.ending = new AbortController();
    return false;
  };
  const read = async (since: number): Promise<number> => {
    const rows = await postgres.ask(
      (sql) => sql<SessionRow[]>`SELECT sha256, member, credential, ended_at IS NOT NULL AS ended,
        (extract(epoch FROM expires_at - now()) * 1000)::float8 AS remaining, revision::float8 AS revision
        FROM dragoman.page_sessions WHERE revision > ${since} ORDER BY revision`,
    );
    const found = new Set(rows.map((row) => row.sha256.toHex()));
    if (since === 0) for (const key of sessions.keys()) if (!found.has(key)) drop(key);
    const returned = rows.filter((row) => !row.ended && ended.has(row.sha256.toHex()));
    for (const row of rows) {
      const key = row.sha256.toHex();
      if (row.ended) ended.set(key, performance.now() + row.remaining);
      if (ended.has(key)) drop(key);
      else if (!sessions.has(key)) sessions.set(key, heldOf(parts, row));
    }
    for (const [key, { until }] of sessions) if (until <= performance.now()) drop(key);
    for (const [key, until] of ended) if (until <= performance.now()) ended.delete(key);
    for (const row of returned) await finish(postgres, Buffer.from(row.sha256));
    return rows.at(-1)?.revision ?? since;
  };
  changes.follow("page_sessions", await read(0), read);
  members.follow(() => {
    for (const key of sessions.keys()) isGood(key);
  });

  const sessionOf = (key: string): AdminSession | undefined => {
    if (!isGood(key)) return undefined;
    const { member, credential, ending } = sessions.get(key)!;
    const keyName = member === null ? undefined : members.keyWith(credential!)?.name;
    return {
      get holds() {
        return isGood(key);
      },
      member,
      ...(keyName && { keyName }),
      ended: ending.signal,
    };
  };

  return {
    find(id) {
      const key = sha256(id).toHex();
      if (sessions.has(key)) return sessionOf(key);
      // Another server may have begun it a moment ago.
      return orAway(
        changes.catchUp("page_sessions").then(() => sessionOf(key)),
        "This server cannot tell whether you are signed in.",
      );
    },
    async begin(session) {
      const id = newSessionId();
      await orAway(insert(parts, sha256(id), session), "Nobody can sign in.");
      await changes.catchUp("page_sessions");
      return id;
    },
    async end(id) {
      await orAway(finish(postgres, sha256(id)), "You could not be signed out everywhere.");
      await changes.catchUp("page_sessions");
    },
    lostKey(id) {
      const session = sessions.get(sha256(id).toHex());
      return session !== undefined && session.member !== null && !memberHolds(members, session);
    },
  };
}

async function insert(parts: SessionParts, digest: Buffer, { member, secret }: NewSession): Promise<void> {
  const credential = member === null ? ownerProofs(parts, digest, secret === parts.adminToken)[0]! : sha256(secret);
  await parts.postgres.transact(async (sql) => {
    const revision = await announceChange(sql, "page_sessions");
    await sql`INSERT INTO dragoman.page_sessions (sha256, member, credential, expires_at, revision)
      VALUES (${digest}, ${member}, ${credential}, now() + make_interval(secs => ${sessionLifetimeMs / 1_000}),
        ${revision})`;
    await sql`UPDATE dragoman.page_sessions SET ended_at = now(), revision = ${revision} WHERE sha256 IN
      (SELECT sha256 FROM dragoman.page_sessions WHERE member IS NOT DISTINCT FROM ${member}::uuid AND ended_at IS NULL
        ORDER BY expires_at DESC, revision DESC OFFSET ${maxSessions})`;
  });
}

async function finish(postgres: Postgres, digest: Buffer): Promise<void> {
  await postgres.transact(async (sql) => {
    await sql`UPDATE dragoman.page_sessions SET ended_at = now(),
      revision = dragoman.announce_change('page_sessions') WHERE sha256 = ${digest} AND ended_at IS NULL`;
  });
}

const heldOf = (parts: SessionParts, row: SessionRow): HeldSession => ({
  member: row.member,
  credential: row.credential && Buffer.from(row.credential),
  isProven: row.member === null && ownerHolds(parts, row),
  until: performance.now() + row.remaining,
  ending: new AbortController(),
});

/** The key may have been revoked, or the member removed. */
function memberHolds(members: Members, { member, credential }: HeldSession): boolean {
  const key = credential === null ? undefined : members.keyWith(credential);
  return key !== undefined && key.member === member && !isExpired(key, Date.now());
}

/**
 * What proves that a session of the owner was begun by a server: who can write to the database cannot make one. It differs with
 * the admin token, which somebody on the server's own machine did not need.
 */
function ownerProofs({ seals, adminToken = "" }: SessionParts, digest: Uint8Array, needsToken: boolean): Buffer[] {
  const about = needsToken ? `token ${adminToken}` : "no token";
  return seals.derived("owner sessions").map((key) => createHmac("sha256", key).update(digest).update(about).digest());
}

function ownerHolds(parts: SessionParts, { sha256: digest, credential }: SessionRow): boolean {
  if (credential?.length !== sha256Bytes) return false;
  const proofs = [true, false].flatMap((needsToken) => ownerProofs(parts, digest, needsToken));
  return proofs.some((proof) => timingSafeEqual(proof, credential));
}

const sha256Bytes = 32;
