/**
 * Sign-ins that wait for a person, in Postgres. The server that began one asks GitHub for its outcome; every other one follows
 * its state and can cancel it. If that server is gone, another goes on with the same code.
 */
import type { TransactionSQL } from "bun";
import type { ShownCode } from "../accounts/sign-in";
import {
  type BegunSignIn,
  maxWaiting,
  type SignInState,
  type SignInStore,
  tooManySignIns,
  type WaitingSignIn,
} from "../accounts/sign-in-store";
import { ProxyError } from "../errors";
import { sha256 } from "../net/credentials";
import { isAwayError, orAway } from "./away";
import { announceChange } from "./changes";
import type { Postgres } from "./connection";
import type { ServerParts } from "./parts";
import { lostReplicas } from "./replica";
import type { Seals } from "./seal";
import { holdSealKey } from "./seal-rotation";
import { aboutSignIn } from "./sealed-columns";

/** Milliseconds between two looks for sign-ins whose server is gone, while there are any. */
const lookEvery = 2_000;
/** Seconds that a sign-in can be asked for after it has ended. */
const keptSeconds = 600;

/** What is sealed. The code for GitHub is removed when the sign-in has ended. */
interface SealedSignIn {
  id: string;
  /** Where the code for GitHub may be sent, and whose the account becomes: as the columns say. */
  of: Pick<BegunSignIn, "host" | "app" | "member">;
  code: ShownCode;
  device?: WaitingSignIn["device"];
}

interface SignInRow {
  sha256: Uint8Array;
  host: string;
  app: string;
  member: string | null;
  sealed_body: Uint8Array;
  state: SignInState;
  replica: string;
  expires_at_ms: number;
  kept_for: number;
  revision: number;
}

interface HeldSignIn {
  begun: BegunSignIn;
  device: WaitingSignIn["device"] | undefined;
  replica: string;
  /** By the monotonic clock of this process, ms. */
  until: number;
}

/** Reads all sign-ins, and follows them from now on. @throws ProxyError */
export async function openPostgresSignIns(parts: ServerParts): Promise<SignInStore> {
  const { postgres, seals, changes, replica, logger } = parts;
  /** By the hash of the id, in hexadecimal. */
  const held = new Map<string, HeldSignIn>();
  /** Those that run here. */
  const mine = new Set<string>();
  /** How sign-ins have ended that could not be written yet. */
  const unwritten = new Map<string, SignInState>();
  let listeners: Parameters<SignInStore["follow"]>[0] = { resume() {}, stop() {} };

  const hold = (row: SignInRow) => {
    const key = row.sha256.toHex();
    const { host, app, member, state, replica: runsAt, expires_at_ms: expiresAt } = row;
    const { id, of, code, device }: SealedSignIn = JSON.parse(seals.open(row.sealed_body, aboutSignIn(key)));
    if (!Bun.deepEquals(of, { host, app, member })) throw changedSignIn();
    const begun = { id, host, app, member, code, expiresAt, state };
    held.set(key, { begun, device, replica: runsAt, until: performance.now() + row.kept_for });
    const isMine = state.name === "waiting" && runsAt === replica;
    if (!isMine && mine.delete(id)) listeners.stop(id);
    if (isMine && device && !mine.has(id)) {
      mine.add(id);
      listeners.resume({ ...begun, device });
    }
  };
  const read = async (since: number): Promise<number> => {
    const rows = await postgres.ask(
      (sql) => sql<SignInRow[]>`SELECT sha256, host, app, member, sealed_body, state, replica,
        (extract(epoch FROM expires_at) * 1000)::float8 AS expires_at_ms,
        (extract(epoch FROM kept_until - now()) * 1000)::float8 AS kept_for, revision::float8 AS revision
        FROM dragoman.sign_ins WHERE revision > ${since} ORDER BY revision`,
    );
    const found = new Set(rows.map((row) => row.sha256.toHex()));
    if (since === 0)
      for (const [key, { begun }] of held) {
        if (found.has(key)) continue;
        held.delete(key);
        if (mine.delete(begun.id)) listeners.stop(begun.id);
      }
    for (const row of rows)
      try {
        hold(row);
      } catch (thrown) {
        logger().error("A sign-in that waits cannot be shown here.", thrown);
      }
    return rows.at(-1)?.revision ?? since;
  };
  changes.follow("sign_ins", await read(0), read);

  const look = async (): Promise<void> => {
    for (const [key, { until }] of held) if (until <= performance.now()) held.delete(key);
    try {
      for (const [id, state] of unwritten) await write(id, state);
      if ([...held.values()].some((each) => each.replica !== replica && isWaiting(each)))
        if (await takeOver(postgres, replica)) await changes.catchUp("sign_ins");
    } catch (thrown) {
      if (!isAwayError(thrown)) logger().error("Sign-ins of other servers could not be taken over.", thrown);
    }
  };
  const write = async (id: string, state: SignInState): Promise<void> => {
    await postgres.transact((sql) => end(sql, parts, { id, state, held: held.get(keyOf(id)) }));
    unwritten.delete(id);
    await changes.catchUp("sign_ins");
  };
  let isLooking = false;
  const timer = setInterval(async () => {
    if (isLooking) return;
    isLooking = true;
    await look();
    isLooking = false;
  }, lookEvery).unref();

  const shown = ({ begun }: HeldSignIn): BegunSignIn => ({ ...begun, state: unwritten.get(begun.id) ?? begun.state });
  /** Another server may have begun it a moment ago. */
  const known = async (id: string): Promise<HeldSignIn | undefined> => {
    if (!held.has(keyOf(id))) await changes.catchUp("sign_ins");
    return held.get(keyOf(id));
  };

  return {
    async add(signIn) {
      mine.add(signIn.id);
      try {
        await postgres.transact((sql) => insert(sql, parts, signIn));
      } catch (thrown) {
        mine.delete(signIn.id);
        throw thrown;
      }
      await changes.catchUp("sign_ins");
    },
    find(id) {
      const found = held.get(keyOf(id));
      if (found) return shown(found);
      const asked = known(id).then((late) => late && shown(late));
      return orAway(asked, "This server cannot tell what has become of the sign-in.");
    },
    waiting: (member) =>
      [...held.values()].filter((each) => each.begun.member === member && isWaiting(each)).map(shown),
    recent: (member) => [...held.values()].filter(({ begun }) => begun.member === member).length,
    async isMine(id) {
      const rows = await postgres.ask(
        (sql) => sql`SELECT 1 FROM dragoman.sign_ins WHERE sha256 = ${sha256(id)} AND replica = ${replica}
          AND state->>'name' = 'waiting'`,
      );
      return rows.length > 0;
    },
    async settle(id, state) {
      mine.delete(id);
      unwritten.set(id, state);
      await write(id, state).catch((thrown) => {
        // Written with the next look.
        if (!isAwayError(thrown)) logger().error("The end of a sign-in could not be written.", thrown);
      });
    },
    async cancel(id) {
      const found = await known(id);
      if (!found) return false;
      await postgres.transact((sql) => end(sql, parts, { id, state: { name: "cancelled" }, held: found }));
      await changes.catchUp("sign_ins");
      return true;
    },
    follow(given) {
      listeners = given;
    },
    close() {
      clearInterval(timer);
    },
  };
}

const changedSignIn = () =>
  new ProxyError("internal", "Its host, its app or its member was changed in the database.", { code: "seal_broken" });

const isWaiting = ({ begun: { state, expiresAt } }: HeldSignIn) => state.name === "waiting" && expiresAt > Date.now();

/** @throws ProxyError `conflict` */
async function insert(sql: TransactionSQL, { seals, replica }: ServerParts, signIn: WaitingSignIn): Promise<void> {
  const { id, host, app, member, code, device } = signIn;
  // Locks the table's revision, so that two servers do not count at the same time.
  const revision = await announceChange(sql, "sign_ins");
  const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM dragoman.sign_ins
    WHERE member IS NOT DISTINCT FROM ${member}::uuid AND state->>'name' = 'waiting' AND expires_at > now()`;
  if (row!.count >= maxWaiting) throw tooManySignIns();
  const { keyId } = await holdSealKey(sql, seals);
  const sealed = sealedBody(seals, { id, of: { host, app, member }, code, device });
  await sql`INSERT INTO dragoman.sign_ins
      (sha256, host, app, member, sealed_body, seal_key_id, state, replica, expires_at, kept_until, revision)
    VALUES (${sha256(id)}, ${host}, ${app}, ${member}, ${sealed}, ${keyId}, '{"name":"waiting"}', ${replica},
      now() + make_interval(secs => ${code.expiresIn}), now() + make_interval(secs => ${code.expiresIn + keptSeconds}),
      ${revision})`;
}

interface Ending {
  id: string;
  state: SignInState;
  held: HeldSignIn | undefined;
}

/** An account that was saved is said to be saved, also if the sign-in was cancelled in the same moment. */
async function end(sql: TransactionSQL, { seals, replica }: ServerParts, { id, state, held }: Ending): Promise<void> {
  if (!held) return;
  const mayEnd = sql`sha256 = ${sha256(id)} AND (state->>'name' = 'waiting'
      AND (replica = ${replica} OR ${state.name !== "failed"}) OR state->>'name' = 'cancelled' AND ${state.name === "done"})`;
  if ((await sql`SELECT 1 FROM dragoman.sign_ins WHERE ${mayEnd}`).length === 0) return;
  const revision = await announceChange(sql, "sign_ins");
  const { keyId } = await holdSealKey(sql, seals);
  const { host, app, member, code } = held.begun;
  await sql`UPDATE dragoman.sign_ins SET state = ${JSON.stringify(state)}::text::jsonb, revision = ${revision},
    sealed_body = ${sealedBody(seals, { id, of: { host, app, member }, code })}, seal_key_id = ${keyId},
    kept_until = now() + make_interval(secs => ${keptSeconds}) WHERE ${mayEnd}`;
}

/** @returns Whether there were any. */
async function takeOver(postgres: Postgres, replica: string): Promise<boolean> {
  return postgres.transact(async (sql) => {
    const waiting = await sql<{ replica: string }[]>`SELECT DISTINCT replica::text AS replica FROM dragoman.sign_ins
      WHERE state->>'name' = 'waiting' AND expires_at > now() AND replica <> ${replica}`;
    if (waiting.length === 0) return false;
    const lost = await lostReplicas(
      sql,
      waiting.map((each) => each.replica),
    );
    if (lost.length === 0) return false;
    const revision = await announceChange(sql, "sign_ins");
    await sql`UPDATE dragoman.sign_ins SET replica = ${replica}, revision = ${revision}
      WHERE state->>'name' = 'waiting' AND expires_at > now()
        AND replica::text IN (SELECT jsonb_array_elements_text(${JSON.stringify(lost)}::text::jsonb))`;
    return true;
  });
}

const sealedBody = (seals: Seals, body: SealedSignIn) => seals.seal(JSON.stringify(body), aboutSignIn(keyOf(body.id)));
const keyOf = (id: string) => sha256(id).toHex();
