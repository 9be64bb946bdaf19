/** The servers of a team, as one of them knows them. */

/** A server of the team. */
export interface KnownServer {
  id: string;
  /** The name of its machine. */
  host: string;
  version: string;
  /** It does what only one of them has to do. */
  isLeader: boolean;
}

/** What this server knows of its team, without asking the database. Read at each use. */
export interface Team {
  /** Those that were alive within the last minute, this one too; undefined while the database is away. */
  readonly servers: readonly KnownServer[] | undefined;
  /** The last question found no database. */
  readonly isDatabaseAway: boolean;
  /** Milliseconds since the database answered. */
  readonly silence: number;
  /** What waits on this server's disk for the database: requests of the history, and settlements of budgets. */
  waiting(): { requests: number; settlements: number };
}
