/**
 * Follows what other servers change. `LISTEN` reports a change as soon as it is committed. What is announced while the connection
 * is down is lost, so revisions are compared every half minute. A connection that died in silence is noticed by a message to
 * oneself that does not arrive. Behind a new connection may be a standby that had not heard of the last changes, and that gives
 * their numbers to others: tables are read from their beginning then, and whenever a number has another mark.
 */
import type { SQL, TransactionSQL } from "bun";
import { isObject, parseJson } from "../json";
import type { Logger } from "../logger";
import { isAwayError } from "./away";
import type { Postgres } from "./connection";
import type { FollowedTable } from "./schema";

export interface Changes {
  /**
   * Calls `catchUp` whenever the table has a newer revision than the last call returned. Calls of one table do not overlap.
   * @param known The revision that is known already.
   * @param catchUp Reads what is newer than a revision. After 0 it reads everything, and forgets what is not there. @returns The
   * newest revision read.
   */
  follow(table: FollowedTable, known: number, catchUp: (since: number) => Promise<number>): void;
  /** Reads what is newer, now. */
  catchUp(table: FollowedTable): Promise<void>;
  /** Calls back with each message on the topic. @returns A function that ends it. */
  on(topic: string, listener: (message: Record<string, unknown>) => void): () => void;
  /** Waits until the topic is announced, or for so many milliseconds. @returns Whether it was announced. */
  hear(topic: string, ms: number): Promise<boolean>;
  /** Begins to listen, and catches up with what has changed before. */
  start(): Promise<void>;
  close(): void;
}

interface Follower {
  known: number;
  /** The newest change that was heard of. */
  heard?: Revision;
  /** What is known may be of a database that has lost its last changes. */
  isDoubtful: boolean;
  read(since: number): Promise<number>;
  reading?: Promise<void>;
  /** Begins after that: what is being read may have been asked for before the newest change. */
  next?: Promise<void>;
}

const channel = "dragoman";
/** Milliseconds between two comparisons of revisions. */
const checkEvery = 30_000;
/** Milliseconds that a message to oneself may take; and after an outage, as Bun's client may listen again half a minute later. */
const [echoMs, echoAfterOutageMs] = [5_000, 500];

export function openChanges(postgres: Postgres, logger: () => Logger): Changes {
  const followers = new Map<FollowedTable, Follower>();
  let timer: Timer | undefined;
  let closed = false;

  const read = async (follower: Follower): Promise<void> => {
    const { isDoubtful } = follower;
    follower.isDoubtful = false;
    try {
      const newest = await follower.read(isDoubtful ? 0 : follower.known);
      follower.known = isDoubtful ? newest : Math.max(follower.known, newest);
    } catch (thrown) {
      follower.isDoubtful ||= isDoubtful;
      throw thrown;
    }
  };
  const begin = (follower: Follower): Promise<void> => {
    follower.reading = read(follower).finally(() => {
      follower.reading = undefined;
    });
    return follower.reading;
  };
  /** Who asks waits for two reads at most, however many ask. */
  const catchUp = async (table: FollowedTable): Promise<void> => {
    const follower = followers.get(table);
    if (!follower || closed) return;
    if (!follower.reading && !follower.next) return begin(follower);
    follower.next ??= follower
      .reading!.catch(() => {})
      .then(() => {
        follower.next = undefined;
        return begin(follower);
      });
    return follower.next;
  };
  /** Without an answer now, the next comparison of revisions tries again. */
  const tryCatchUp = (table: FollowedTable) =>
    catchUp(table).catch((thrown) => {
      if (!isAwayError(thrown)) logger().error(`Changes of ${table} in the database could not be read.`, thrown);
    });

  const compare = async (): Promise<void> => {
    try {
      const rows = await postgres.ask(
        (sql) => sql<RevisionRow[]>`SELECT name, revision::float8 AS revision, mark FROM dragoman.revisions`,
      );
      const behind = rows.filter(({ name, ...newest }) => {
        const follower = followers.get(name);
        if (!follower) return false;
        if (newest.revision < follower.known) follower.isDoubtful = true;
        return isBehind(follower, newest);
      });
      await Promise.all(behind.map(({ name }) => tryCatchUp(name)));
    } catch (thrown) {
      if (!isAwayError(thrown)) logger().error("The revisions in the database could not be read.", thrown);
    }
  };

  const listeners = new Map<string, Set<(message: Record<string, unknown>) => void>>();
  const listenersOf = (topic: string) => {
    const found = listeners.get(topic) ?? new Set();
    listeners.set(topic, found);
    return found;
  };
  const heard = (payload: string) => {
    const message = parseJson(payload);
    if (!isObject(message)) return;
    const { table, revision, mark } = message;
    const follower = followers.get(table as FollowedTable);
    if (follower && typeof revision === "number" && typeof mark === "string") {
      isBehind(follower, { revision, mark });
      void tryCatchUp(table as FollowedTable);
    }
    if (typeof message.topic === "string") for (const listener of listeners.get(message.topic) ?? []) listener(message);
  };

  const on: Changes["on"] = (topic, listener) => {
    listenersOf(topic).add(listener);
    return () => {
      listenersOf(topic).delete(listener);
      if (listenersOf(topic).size === 0) listeners.delete(topic);
    };
  };
  const hear = async (topic: string, ms: number): Promise<boolean> => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const off = on(topic, () => resolve(true));
    const limit = setTimeout(resolve, ms, false);
    const isHeard = await promise;
    clearTimeout(limit);
    off();
    return isHeard;
  };

  const echo = `echo ${crypto.randomUUID()}`;
  const checkListening = async (withinMs: number): Promise<void> => {
    const heard = hear(echo, withinMs);
    try {
      await postgres.ask((sql) => notifyServers(sql, { topic: echo }));
    } catch (thrown) {
      if (!isAwayError(thrown)) logger().error("The database takes no messages for other servers.", thrown);
      return;
    }
    if ((await heard) || closed) return;
    logger().info("Messages of other servers do not arrive, so the connection for them is opened anew.");
    postgres.replaceDirect();
  };
  const check = (withinMs: number) => Promise.all([compare(), checkListening(withinMs)]);
  const doubt = () => {
    for (const follower of followers.values()) follower.isDoubtful = true;
  };

  return {
    follow(table, known, catchUpSince) {
      followers.set(table, { known, read: catchUpSince, isDoubtful: false });
    },
    catchUp,
    hear,
    on,
    async start() {
      let isFirst = true;
      await postgres.listen(channel, heard, () => {
        if (!isFirst) doubt();
        isFirst = false;
        void compare();
      });
      postgres.whenBack(() => {
        doubt();
        void check(echoAfterOutageMs);
      });
      timer = setInterval(check, checkEvery, echoMs).unref();
    },
    close() {
      closed = true;
      clearInterval(timer);
    },
  };
}

/** Numbers a change of a table, once in each transaction, and announces it when that is committed. @returns The number. */
export async function announceChange(sql: TransactionSQL, table: FollowedTable): Promise<number> {
  const [row] = await sql<{ revision: number }[]>`SELECT dragoman.announce_change(${table})::float8 AS revision`;
  return row!.revision;
}

/** Sends a message to those who follow its topic with `Changes.on`, on all servers; in a transaction, when that is committed. */
export const notifyServers = (sql: SQL, message: { topic: string; [field: string]: unknown }) =>
  sql`SELECT ${notification(sql, message)}`;

/** The same as a part of a statement. */
export const notification = (sql: SQL, message: { topic: string; [field: string]: unknown }) =>
  sql`pg_notify(${channel}, ${JSON.stringify(message)})`;

/** The number of a table's newest change, and a random mark of that change. */
interface Revision {
  revision: number;
  mark: string;
}

interface RevisionRow extends Revision {
  name: FollowedTable;
}

/** @returns Whether there is something to read. */
function isBehind(follower: Follower, newest: Revision): boolean {
  const { heard } = follower;
  if (heard?.revision === newest.revision && heard.mark !== newest.mark) follower.isDoubtful = true;
  if (heard === undefined || newest.revision >= heard.revision || follower.isDoubtful) follower.heard = newest;
  return follower.isDoubtful || newest.revision > follower.known;
}
