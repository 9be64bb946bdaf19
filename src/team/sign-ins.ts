/**
 * Sign-ins that wait for a person, in Postgres. The server that began one asks GitHub for its outcome; the others follow its state,
 * show its code, and can cancel it.
 */
import type { TransactionSQL } from "bun";
import type { Awaitable } from "../lib/awaitable";
import { sha256 } from "../lib/net/in/credentials";
import { aboutSignIn } from "../lib/seals";
import { sql, type Tables } from "../lib/sql";
import type { ShownCode } from "../people/accounts/sign-in";
import {
  type BegunSignIn,
  maxWaiting,
  type SignInState,
  type SignInStore,
  tooManySignIns,
  type WaitingSignIn,
} from "../people/accounts/sign-in-store";
import { isAwayError, orAway } from "./away";
import type { StoreParts } from "./parts";
import { holdSealKey } from "./seal-key";
import { lockTable } from "./stamps";

/** Milliseconds between two tries to write how a sign-in has ended. */
const retryEvery = 1_000;
/** Seconds that a sign-in can be asked for after it has ended. */
const keptSeconds = 600;

/** The part of a sign-in that is sealed. */
interface SealedSignIn {
  id: string;
  code: ShownCode;
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
  /** When it is forgotten, by the monotonic clock of this process, ms. */
  until: number;
}

export class TeamSignIns implements SignInStore {
  readonly #parts: StoreParts;
  /** The keys are hashes of ids, in hexadecimal. */
  readonly #held = new Map<string, HeldSignIn>();
  /** The ids of those that this server began and that have not ended. */
  readonly #own = new Set<string>();
  #stop: (id: string) => void = () => {};

  private constructor(parts: StoreParts) {
    this.#parts = parts;
  }

  /** Reads all sign-ins, and follows them from now on. @throws ProxyError */
  static async open(parts: StoreParts): Promise<TeamSignIns> {
    const opened = new TeamSignIns(parts);
    const columns = `sha256, host, app, member, sealed_body, state,
      floor(extract(epoch FROM expires_at) * 1000)::float8 AS expires_at_ms,
      (extract(epoch FROM kept_until - now()) * 1000)::float8 AS kept_for`;
    await parts.stamps.follow("sign_ins", async () => {
      const rows = await parts.postgres.requests.ask((sql) => sql.unsafe(`SELECT ${columns} FROM dragoman.sign_ins`));
      opened.#take(rows as SignInRow[]);
    });
    return opened;
  }

  async add(signIn: WaitingSignIn): Promise<void> {
    await this.#parts.postgres.transact((sql) => insert(sql, this.#parts, signIn));
    this.#own.add(signIn.id);
    await this.#parts.stamps.tryCatchUp("sign_ins");
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
    const kept = [...this.#held.values()].filter(({ until }) => until > performance.now());
    return kept.filter(({ begun }) => begun.member === member).length;
  }

  async waits(id: string): Promise<boolean> {
    const rows = await this.#parts.postgres.ask(
      (sql) => sql`SELECT 1 FROM dragoman.sign_ins WHERE sha256 = ${sha256(id)} AND state->>'name' = 'waiting'`,
    );
    return rows.length > 0;
  }

  /** Tries for as long as the sign-in is kept: an account may have been saved, which a person wants to know. */
  async settle(id: string, state: SignInState): Promise<void> {
    this.#own.delete(id);
    const isKept = () => (this.#held.get(keyOf(id))?.until ?? 0) > performance.now();
    while (isKept())
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

  follow(stop: (id: string) => void): void {
    this.#stop = stop;
  }

  /** This server stops, and nobody else asks GitHub about the sign-ins that it began. */
  async leave(): Promise<void> {
    const state = { name: "failed", reason: serverStopped } as const;
    await Promise.allSettled([...this.#own].map((id) => this.#write(id, state)));
  }

  close(): void {
    this.#held.clear();
  }

  async #end(id: string, state: SignInState): Promise<void> {
    await this.#write(id, state);
    await this.#parts.stamps.tryCatchUp("sign_ins");
  }

  /** An account that was saved is said to be saved, also if the sign-in was cancelled in the same moment. */
  #write(id: string, state: SignInState): Promise<unknown> {
    return this.#parts.postgres.transact(
      (sql) => sql`UPDATE dragoman.sign_ins SET state = ${JSON.stringify(state)}::text::jsonb,
          kept_until = now() + make_interval(secs => ${keptSeconds})
        WHERE sha256 = ${sha256(id)} AND (state->>'name' = 'waiting'
          OR state->>'name' = 'cancelled' AND ${state.name === "done"})`,
    );
  }

  /** Another server may have begun it a moment ago. */
  async #known(id: string): Promise<HeldSignIn | undefined> {
    if (!this.#held.has(keyOf(id))) await this.#parts.stamps.catchUp("sign_ins");
    return this.#held.get(keyOf(id));
  }

  #take(rows: readonly SignInRow[]): void {
    this.#held.clear();
    for (const row of rows)
      try {
        this.#hold(row);
      } catch (thrown) {
        this.#parts.logger.error("A sign-in that waits cannot be shown here.", thrown);
      }
  }

  #hold(row: SignInRow): void {
    const key = row.sha256.toHex();
    const { host, app, member, state, expires_at_ms: expiresAt } = row;
    const { id, code }: SealedSignIn = JSON.parse(this.#parts.seals.open(row.sealed_body, aboutSignIn(key)));
    const begun = { id, host, app, member, code, expiresAt, state };
    this.#held.set(key, { begun, until: performance.now() + row.kept_for });
    if (state.name === "cancelled" && this.#own.delete(id)) this.#stop(id);
  }
}

const serverStopped = "The server that waited for the answer of GitHub has stopped. Begin again.";

const isWaiting = ({ begun: { state, expiresAt } }: HeldSignIn) => state.name === "waiting" && expiresAt > Date.now();

/** @throws ProxyError `conflict` */
async function insert(sql: TransactionSQL, { seals }: StoreParts, signIn: WaitingSignIn): Promise<void> {
  const { id, host, app, member, code } = signIn;
  await lockTable(sql, "sign_ins");
  const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM dragoman.sign_ins
    WHERE member IS NOT DISTINCT FROM ${member}::text AND state->>'name' = 'waiting' AND expires_at > now()`;
  if (row!.count >= maxWaiting) throw tooManySignIns();
  await holdSealKey(sql, seals);
  const sealed = seals.seal(JSON.stringify({ id, code } satisfies SealedSignIn), aboutSignIn(keyOf(id)));
  await sql`INSERT INTO dragoman.sign_ins
      (sha256, host, app, member, sealed_body, state, expires_at, kept_until)
    VALUES (${sha256(id)}, ${host}, ${app}, ${member}, ${sealed}, '{"name":"waiting"}',
      now() + make_interval(secs => ${code.expiresIn}), now() + make_interval(secs => ${code.expiresIn + keptSeconds}))`;
}

/** Those of a member that wait. */
export const cancelSignIns = (tables: Tables, member: string): Promise<unknown> =>
  tables.ask(sql`UPDATE dragoman.sign_ins SET state = '{"name":"cancelled"}'
    WHERE member = ${member} AND state->>'name' = 'waiting'`);

const keyOf = (id: string) => sha256(id).toHex();
