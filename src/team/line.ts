/** One way to the database: some connections, and what is known of whether they lead to it. */
import type { SQL } from "bun";
import { databaseAway, isAwayError, isUnanswered, isUnreachable, NotAsked, SlowDatabase, sqlState } from "./away";
import { openTurns, type Turns } from "./turns";

export interface Line {
  /** The present connections. All are replaced when one does not answer, because a dead connection reports no error. */
  readonly sql: SQL;
  /** The last question found no database. */
  readonly isAway: boolean;
  /** Milliseconds since the database answered. */
  readonly silence: number;
  /**
   * @param timeoutMs From when the question has a connection. While all are busy it waits for as long as the database answers others.
   * @param isChange Whether something is to be changed: for the sentence of the error.
   */
  ask<T>(question: (sql: SQL) => Promise<T>, timeoutMs: number, isChange?: boolean): Promise<T>;
  /** Opens new connections in place of these. */
  replace(): void;
  close(): Promise<void>;
}

export interface LineOptions {
  open(): SQL;
  /** How many questions the connections take at a time. */
  connections: number;
  /** Called with the connections that take the place of others. */
  replaced?(sql: SQL): void;
  /** The database answers again. */
  back?(): void;
  /** Seconds that questions which are under way may take when their connections are replaced. */
  finishSeconds: number;
}

/** Milliseconds between two looks whether the database is back: at first, and at most. */
const [firstPause, longestPause] = [20, 500];
/** Milliseconds that a look may take. */
const probeTimeoutMs = 3_000;
/** Milliseconds that questions wait at the beginning, as most connections that are lost can be replaced at once. */
const patienceMs = 250;

/** While only the probe asks. */
interface Outage {
  cause: unknown;
  /** Until then questions wait. */
  waitUntil: number;
  over: PromiseWithResolvers<void>;
}

/** Connects with the first question. */
export function openLine({ open, connections, replaced, back, finishSeconds }: LineOptions): Line {
  let sql = open();
  let turns = openTurns(connections);
  let outage: Outage | undefined;
  let isAway = false;
  let answeredAt = performance.now();
  let closed = false;
  /** Replaced ones that still finish questions. */
  const finishing = new Set<SQL>();

  const answered = () => {
    answeredAt = performance.now();
    isAway = false;
    if (!outage) return;
    outage.over.resolve();
    outage = undefined;
    back?.();
  };
  const replace = () => {
    const old = sql;
    sql = open();
    turns.end();
    turns = openTurns(connections);
    replaced?.(sql);
    finishing.add(old);
    void old.close({ timeout: finishSeconds }).finally(() => finishing.delete(old));
  };
  /** A question that gets no answer may have gone to a connection that is dead, as others would too. */
  const replaceSilent = (asked: SQL, thrown: unknown) => {
    if (thrown instanceof SlowDatabase && asked === sql && !closed) replace();
  };
  const probe = async (current: Outage): Promise<void> => {
    for (let pause = firstPause; outage === current && !closed; pause = Math.min(pause * 2, longestPause)) {
      const asked = sql;
      try {
        await withinTime(asked`SELECT 1`, probeTimeoutMs);
        if (outage === current) answered();
      } catch (thrown) {
        current.cause = thrown;
        replaceSilent(asked, thrown);
        await Bun.sleep(pause);
      }
    }
  };
  const begin = (cause: unknown) => {
    if (outage || closed) return;
    outage = { cause, waitUntil: performance.now() + patienceMs, over: Promise.withResolvers() };
    turns.end();
    void probe(outage);
  };
  /** @throws ProxyError if the database is still away after a moment. */
  const untilBack = async (isChange: boolean): Promise<void> => {
    while (outage) {
      const left = outage.waitUntil - performance.now();
      if (left <= 0) throw databaseAway(new NotAsked("the database is away", { cause: outage.cause }), isChange);
      await Promise.race([outage.over.promise, Bun.sleep(left)]);
    }
  };
  /** @throws ProxyError if the database is away, or answers nobody for so long. */
  const untilTurn = async (timeoutMs: number, isChange: boolean): Promise<Turns> => {
    const askedAt = performance.now();
    const left = () => timeoutMs - (performance.now() - Math.max(askedAt, answeredAt));
    for (;;) {
      if (outage) await untilBack(isChange);
      const current = turns;
      const outcome = await current.take(left);
      if (outcome === "turn" && current === turns && !outage) return current;
      if (outcome === "turn") current.give();
      if (outcome !== "silent" || current !== turns || outage) continue;
      const cause = new SlowDatabase(`no answer to anybody within ${timeoutMs} ms`);
      isAway = true;
      if (!closed) replace();
      begin(cause);
      throw databaseAway(new NotAsked("all connections wait for the database", { cause }), isChange);
    }
  };

  return {
    get sql() {
      return sql;
    },
    get isAway() {
      return isAway;
    },
    get silence() {
      return performance.now() - answeredAt;
    },
    async ask(question, timeoutMs, isChange = false) {
      for (let isFirst = true; ; isFirst = false) {
        const turn = await untilTurn(timeoutMs, isChange);
        const asked = sql;
        try {
          const answer = await withinTime(question(asked), timeoutMs);
          answered();
          return answer;
        } catch (thrown) {
          if (!isAwayError(thrown)) {
            if (sqlState(thrown) !== undefined) answered();
            throw thrown;
          }
          isAway = true;
          replaceSilent(asked, thrown);
          if (isUnreachable(thrown)) begin(thrown);
          // Nothing was done, and the next connection may work: perhaps only this one was lost.
          if (isFirst && outage && !isUnanswered(thrown)) continue;
          throw databaseAway(thrown, isChange);
        } finally {
          turn.give();
        }
      }
    },
    replace,
    async close() {
      closed = true;
      turns.end();
      outage?.over.resolve();
      outage = undefined;
      const ends = [...finishing].map((old) => old.close({ timeout: 0 }));
      await Promise.allSettled([sql.close({ timeout: finishSeconds > 0 ? 1 : 0 }), ...ends]);
    },
  };
}

/**
 * A server that disappeared without closing its connections is noticed by the time that an answer takes.
 * @throws SlowDatabase
 */
export async function withinTime<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new SlowDatabase(`no answer within ${timeoutMs} ms`)), timeoutMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
