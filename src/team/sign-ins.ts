/**
 * Sign-ins that wait for a person, in Postgres. The server that leads asks GitHub for their outcome, whichever began them; every
 * other one follows their states and can cancel them.
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
import type { Awaitable } from "../awaitable";
import { ProxyError } from "../errors";
import { sha256 } from "../net/in/credentials";
import { isAwayError, orAway } from "./away";
import { announceChange } from "./changes";
import { followRows } from "./held-table";
import type { StoreParts } from "./parts";
import { aboutSignIn, type Seals } from "./seal";
import { holdSealKey } from "./seal-rotation";

/** Milliseconds between two looks whether this server leads now. */
const lookEvery = 1_000;
/** Milliseconds between two tries to write how a sign-in has ended. */
const retryEvery = 1_000;
/** Seconds that a sign-in can be asked for after it has ended. */
const keptSeconds = 600;

/** The part of a sign-in that is sealed. The code for GitHub is removed when the sign-in has ended. */
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
  expires_at_ms: number;
  kept_for: number;
}

interface HeldSignIn {
  begun: BegunSignIn;
  device: WaitingSignIn["device"] | undefined;
  /** When it is forgotten, by the monotonic clock of this process, ms. */
  until: number;
}

interface SignInParts extends StoreParts {
  /** Whether this server leads. Read at each use. */
  isLeader(): boolean;
}

export class TeamSignIns implements SignInStore {
  readonly #parts: SignInParts;
  /** The keys are hashes of ids, in hexadecimal. */
  readonly #held = new Map<string, HeldSignIn>();
  /** The ids of those that run here. */
  readonly #mine = new Set<string>();
  #listeners: Parameters<SignInStore["follow"]>[0] | undefined;
  readonly #timer: Timer;

  private constructor(parts: SignInParts) {
    this.#parts = parts;
    this.#timer = setInterval(() => this.#assign(), lookEvery).unref();
  }

  /** Reads all sign-ins, and follows them from now on. @throws ProxyError */
  static async open(parts: SignInParts): Promise<TeamSignIns> {
    const opened = new TeamSignIns(parts);
    const columns = `sha256, host, app, member, sealed_body, state,
      (extract(epoch FROM expires_at) * 1000)::float8 AS expires_at_ms,
      (extract(epoch FROM kept_until - now()) * 1000)::float8 AS kept_for`;
    await followRows<SignInRow>(parts, "sign_ins", columns, (rows, areAll) => opened.#take(rows, areAll));
    return opened;
  }

  async add(signIn: WaitingSignIn): Promise<boolean> {
    const isHere = this.#parts.isLeader();
    if (isHere) this.#mine.add(signIn.id);
    try {
      await this.#parts.postgres.transact((sql) => insert(sql, this.#parts, signIn));
    } catch (thrown) {
      this.#mine.delete(signIn.id);
      throw thrown;
    }
    await this.#catchUp();
    return isHere;
  }

  find(id: string): Awaitable<BegunSignIn | undefined> {
    const found = this.#held.get(keyOf(id));
    if (found) return found.begun;
    const asked = this.#known(id).then((late) => late?.begun);
    return orAway(asked, "This server cannot tell what has become of the sign-in.");
  }

  waiting(member: string | null): BegunSignIn[] {
    const waiting = [...this.#held.values()].filter((each) => each.begun.member === member && isWaiting(each));
    return waiting.map(({ begun }) => begun);
  }

  recent(member: string): number {
    return [...this.#held.values()].filter(({ begun }) => begun.member === member).length;
  }

  async isMine(id: string): Promise<boolean> {
    if (!this.#parts.isLeader()) return false;
    const rows = await this.#parts.postgres.ask(
      (sql) => sql`SELECT 1 FROM dragoman.sign_ins WHERE sha256 = ${sha256(id)} AND state->>'name' = 'waiting'`,
    );
    return rows.length > 0;
  }

  /** Tries for as long as the sign-in is kept: an account may have been saved, which a person wants to know. */
  async settle(id: string, state: SignInState): Promise<void> {
    // Another server may have gone on with it.
    if (state.name === "failed" && !this.#parts.isLeader()) return;
    while (this.#held.has(keyOf(id)))
      try {
        return await this.#end(id, state);
      } catch (thrown) {
        if (!isAwayError(thrown)) this.#parts.logger.error("The end of a sign-in could not be written.", thrown);
        await Bun.sleep(retryEvery);
      }
  }

  async cancel(id: string): Promise<boolean> {
    if (!(await this.#known(id))) return false;
    await this.#end(id, { name: "cancelled" });
    return true;
  }

  follow(listeners: Parameters<SignInStore["follow"]>[0]): void {
    this.#listeners = listeners;
    this.#assign();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#held.clear();
  }

  async #end(id: string, state: SignInState): Promise<void> {
    await this.#parts.postgres.transact((sql) => end(sql, this.#parts, { id, state, held: this.#held.get(keyOf(id)) }));
    await this.#catchUp();
  }

  #catchUp(): Promise<void> {
    return this.#parts.changes.catchUp("sign_ins");
  }

  /** Another server may have begun it a moment ago. */
  async #known(id: string): Promise<HeldSignIn | undefined> {
    if (!this.#held.has(keyOf(id))) await this.#catchUp();
    return this.#held.get(keyOf(id));
  }

  #take(rows: readonly SignInRow[], areAll: boolean): void {
    if (areAll) this.#held.clear();
    for (const row of rows)
      try {
        this.#hold(row);
      } catch (thrown) {
        this.#parts.logger.error("A sign-in that waits cannot be shown here.", thrown);
      }
    this.#assign();
  }

  #hold(row: SignInRow): void {
    const key = row.sha256.toHex();
    const { host, app, member, state, expires_at_ms: expiresAt } = row;
    const { id, of, code, device }: SealedSignIn = JSON.parse(
      this.#parts.seals.open(row.sealed_body, aboutSignIn(key)),
    );
    if (!Bun.deepEquals(of, { host, app, member })) throw changedSignIn();
    const begun = { id, host, app, member, code, expiresAt, state };
    this.#held.set(key, { begun, device, until: performance.now() + row.kept_for });
  }

  /** Goes on with those that wait if this server leads, and otherwise leaves them to the one that does. */
  #assign(): void {
    if (!this.#listeners) return;
    const isLeader = this.#parts.isLeader();
    const wanted = new Set<string>();
    for (const [key, each] of this.#held) {
      const { begun, device, until } = each;
      if (until <= performance.now()) this.#held.delete(key);
      if (!isLeader || !device || !isWaiting(each)) continue;
      wanted.add(begun.id);
      if (this.#mine.has(begun.id)) continue;
      this.#mine.add(begun.id);
      this.#listeners.resume({ ...begun, device });
    }
    for (const id of this.#mine)
      if (!wanted.has(id) && this.#held.has(keyOf(id)) && this.#mine.delete(id)) this.#listeners.stop(id);
  }
}

const changedSignIn = () =>
  new ProxyError("internal", "Its host, its app or its member was changed in the database.", { code: "seal_broken" });

const isWaiting = ({ begun: { state, expiresAt } }: HeldSignIn) => state.name === "waiting" && expiresAt > Date.now();

/** @throws ProxyError `conflict` */
async function insert(sql: TransactionSQL, { seals }: StoreParts, signIn: WaitingSignIn): Promise<void> {
  const { id, host, app, member, code, device } = signIn;
  // Locks the table's revision, so that two servers do not count at the same time.
  const revision = await announceChange(sql, "sign_ins");
  const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM dragoman.sign_ins
    WHERE member IS NOT DISTINCT FROM ${member}::uuid AND state->>'name' = 'waiting' AND expires_at > now()`;
  if (row!.count >= maxWaiting) throw tooManySignIns();
  const { keyId } = await holdSealKey(sql, seals);
  const sealed = sealedBody(seals, { id, of: { host, app, member }, code, device });
  await sql`INSERT INTO dragoman.sign_ins
      (sha256, host, app, member, sealed_body, seal_key_id, state, expires_at, kept_until, revision)
    VALUES (${sha256(id)}, ${host}, ${app}, ${member}, ${sealed}, ${keyId}, '{"name":"waiting"}',
      now() + make_interval(secs => ${code.expiresIn}), now() + make_interval(secs => ${code.expiresIn + keptSeconds}),
      ${revision})`;
}

interface Ending {
  id: string;
  state: SignInState;
  held: HeldSignIn | undefined;
}

/** An account that was saved is said to be saved, also if the sign-in was cancelled in the same moment. */
async function end(sql: TransactionSQL, { seals }: StoreParts, { id, state, held }: Ending): Promise<void> {
  if (!held) return;
  const mayEnd = sql`sha256 = ${sha256(id)} AND (state->>'name' = 'waiting'
      OR state->>'name' = 'cancelled' AND ${state.name === "done"})`;
  if ((await sql`SELECT 1 FROM dragoman.sign_ins WHERE ${mayEnd}`).length === 0) return;
  const revision = await announceChange(sql, "sign_ins");
  const { keyId } = await holdSealKey(sql, seals);
  const { host, app, member, code } = held.begun;
  await sql`UPDATE dragoman.sign_ins SET state = ${JSON.stringify(state)}::text::jsonb, revision = ${revision},
    sealed_body = ${sealedBody(seals, { id, of: { host, app, member }, code })}, seal_key_id = ${keyId},
    kept_until = now() + make_interval(secs => ${keptSeconds}) WHERE ${mayEnd}`;
}

const sealedBody = (seals: Seals, body: SealedSignIn) => seals.seal(JSON.stringify(body), aboutSignIn(keyOf(body.id)));
const keyOf = (id: string) => sha256(id).toHex();
