/**
 * Follows what other servers change. `LISTEN` reports a change as soon as it is committed. What is announced while the connection
 * is down is lost, so revisions are compared every half minute. A connection that died in silence is noticed by a message to
 * oneself that does not arrive. Behind a new connection may be a standby that had not heard of the last changes, or a restored
 * backup, which gives their numbers to others: every table is read whole then, and one whose number is lower than it was.
 */
import type { SQL, TransactionSQL } from "bun";
import { FreshRuns } from "../lib/awaitable";
import { isObject, parseJson } from "../lib/json";
import type { Logger } from "../lib/logger";
import { isAwayError } from "./away";
import type { Postgres } from "./connection";
import type { FollowedTable } from "./schema";

interface Follower {
  known: number;
  /** What is known may be of a database that has lost its last changes. */
  isDoubtful: boolean;
  read(since: number): Promise<number>;
  /** What is being read may have been asked for before the newest change. */
  reads: FreshRuns<void>;
}

type Listener = (message: Record<string, unknown>) => void;

const channel = "dragoman";
/** Milliseconds between two comparisons of revisions. */
const checkEvery = 30_000;
/** Milliseconds that a message to oneself may take; and after an outage, as Bun's client may listen again half a minute later. */
const [echoMs, echoAfterOutageMs] = [5_000, 500];

export class Changes {
  readonly #postgres: Postgres;
  readonly #logger: Logger;
  readonly #followers = new Map<FollowedTable, Follower>();
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #echo = `echo ${crypto.randomUUID()}`;
  #timer: Timer | undefined;
  #closed = false;

  constructor(postgres: Postgres, logger: Logger) {
    this.#postgres = postgres;
    this.#logger = logger;
  }

  /**
   * Calls `read` whenever the table has a newer revision than the last call returned. Calls of one table do not overlap.
   * @param known The revision that is known already.
   * @param read Reads what is newer than a revision. After 0 it reads everything, and forgets what is not there. @returns The
   * newest revision read.
   */
  follow(table: FollowedTable, known: number, read: (since: number) => Promise<number>): void {
    const reads = new FreshRuns(() => readNewer(follower));
    const follower: Follower = { known, read, reads, isDoubtful: false };
    this.#followers.set(table, follower);
  }

  /** Reads what is newer, now. Whoever asks waits for two reads at most, however many others ask. */
  async catchUp(table: FollowedTable): Promise<void> {
    if (!this.#closed) await this.#followers.get(table)?.reads.run();
  }

  /** Calls back with each message on the topic. @returns A function that ends it. */
  on(topic: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(topic) === listeners) this.#listeners.delete(topic);
    };
  }

  /** Begins to listen, and catches up with what has changed before. */
  async start(): Promise<void> {
    let isFirst = true;
    await this.#postgres.listen(
      channel,
      (payload) => this.#hear(payload),
      () => {
        if (!isFirst) this.#doubt();
        isFirst = false;
        void this.#compare();
      },
    );
    this.#postgres.whenBack(() => {
      this.#doubt();
      void this.#check(echoAfterOutageMs);
    });
    this.#timer = setInterval(() => void this.#check(echoMs), checkEvery).unref();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
  }

  /**
   * Reads what is newer, after a change that is made, so that this server knows it too. Never throws: without an answer now, the
   * next comparison of revisions tries again, and whoever made the change is not told that it failed.
   */
  async tryCatchUp(table: FollowedTable): Promise<void> {
    try {
      await this.catchUp(table);
    } catch (thrown) {
      this.#report(`Changes of ${table} in the database could not be read.`, thrown);
    }
  }

  #report(sentence: string, thrown: unknown): void {
    if (!isAwayError(thrown)) this.#logger.error(sentence, thrown);
  }

  #hear(payload: string): void {
    const message = parseJson(payload);
    if (!isObject(message)) return;
    const { table, topic } = message;
    if (this.#followers.has(table as FollowedTable)) void this.tryCatchUp(table as FollowedTable);
    if (typeof topic === "string") for (const listener of [...(this.#listeners.get(topic) ?? [])]) listener(message);
  }

  /** What is known may be of a database that has lost its last changes. */
  #doubt(): void {
    for (const follower of this.#followers.values()) follower.isDoubtful = true;
  }

  async #check(echoWithinMs: number): Promise<void> {
    await Promise.all([this.#compare(), this.#checkListening(echoWithinMs)]);
  }

  async #compare(): Promise<void> {
    try {
      const rows = await this.#postgres.requests.ask(
        (sql) => sql<{ name: FollowedTable; revision: number }[]>`SELECT name, revision::float8 AS revision
          FROM dragoman.revisions`,
      );
      const behind = rows.filter(({ name, revision }) => {
        const follower = this.#followers.get(name);
        if (follower && revision < follower.known) follower.isDoubtful = true;
        return follower && (follower.isDoubtful || revision > follower.known);
      });
      await Promise.all(behind.map(({ name }) => this.tryCatchUp(name)));
    } catch (thrown) {
      this.#report("The revisions in the database could not be read.", thrown);
    }
  }

  /** Replaces the connection that listens if a message to oneself does not arrive. */
  async #checkListening(withinMs: number): Promise<void> {
    const { promise: heard, resolve } = Promise.withResolvers<boolean>();
    const off = this.on(this.#echo, () => resolve(true));
    const limit = setTimeout(resolve, withinMs, false);
    try {
      await this.#postgres.requests.ask((sql) => notifyServers(sql, { topic: this.#echo }));
      if ((await heard) || this.#closed) return;
      this.#logger.info("Messages of other servers do not arrive, so the connection for them is opened anew.");
      this.#postgres.replaceDirect();
    } catch (thrown) {
      this.#report("The database takes no messages for other servers.", thrown);
    } finally {
      clearTimeout(limit);
      off();
    }
  }
}

async function readNewer(follower: Follower): Promise<void> {
  const { isDoubtful } = follower;
  follower.isDoubtful = false;
  try {
    const newest = await follower.read(isDoubtful ? 0 : follower.known);
    follower.known = isDoubtful ? newest : Math.max(follower.known, newest);
  } catch (thrown) {
    follower.isDoubtful ||= isDoubtful;
    throw thrown;
  }
}

/** Numbers a change of a table, once in each transaction, and announces it when that is committed. @returns The number. */
export async function announceChange(sql: TransactionSQL, table: FollowedTable): Promise<number> {
  const [row] = await sql<{ revision: number }[]>`SELECT dragoman.announce_change(${table})::float8 AS revision`;
  return row!.revision;
}

/** Sends a message to those who follow its topic with `Changes.on`, on all servers; in a transaction, when that is committed. */
export const notifyServers = (sql: SQL, message: { topic: string; [field: string]: unknown }) =>
  sql`SELECT pg_notify(${channel}, ${JSON.stringify(message)})`;
