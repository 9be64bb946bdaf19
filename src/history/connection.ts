/** Holds the history's file open. It may be locked, removed or damaged at any time. */
import type { Database } from "bun:sqlite";
import { type FileContent, fileIdentity, isDamage, mayPass, moveAside, openDatabase } from "./database";
import { migrations, prepareHistory } from "./migrations";
import { adoptLayout } from "./rollup-store";

export interface HistoryConnection {
  /** Works on the file that is at the path now. A file that was removed or damaged is replaced. */
  use<T>(work: (database: Database) => T): T;
  readonly isOpen: boolean;
  readonly isClosed: boolean;
  /** Closes the file for good. */
  close(): void;
}

export interface ConnectionOptions {
  warn(sentence: string): void;
  /** Called each time a file was opened, with the time of its newest row. */
  opened(newestStart: number | undefined): void;
}

const content: FileContent = { name: "request history", consequence: "a new history was started" };

/** After a passing error (a lock, a full disk) the next use tries again. @throws Other errors. */
export function openConnection(path: string, { warn, opened }: ConnectionOptions): HistoryConnection {
  let database: Database | undefined;
  let identity: string | undefined;
  let isAdopted = false;
  let closed = false;

  const open = (tries?: number): Database => {
    const connected = openDatabase(path, { migrations, content, prepare: prepareHistory, warn, tries });
    identity = fileIdentity(path);
    isAdopted = false;
    opened(newestStart(connected));
    return connected;
  };
  const release = () => {
    database?.close();
    database = undefined;
  };

  try {
    database = open();
  } catch (error) {
    if (!mayPass(error)) throw error;
  }

  return {
    use(work) {
      if (closed) throw new Error("the history is closed");
      if (database && fileIdentity(path) !== identity) release();
      database ??= open(1);
      try {
        // At the first use, not at the start: the time zone takes milliseconds to find.
        if (!isAdopted) adoptLayout(database);
        isAdopted = true;
        return work(database);
      } catch (error) {
        if (isDamage(error)) {
          release();
          moveAside(path, identity, { content, warn });
        }
        throw error;
      }
    },
    get isOpen() {
      return database !== undefined;
    },
    get isClosed() {
      return closed;
    },
    close() {
      closed = true;
      release();
    },
  };
}

/** Undefined also if the file is damaged, which the next use finds out. */
function newestStart(database: Database): number | undefined {
  try {
    const sql = "SELECT started_at_ms AS at FROM requests ORDER BY id DESC LIMIT 1";
    return database.query<{ at: number }, []>(sql).get()?.at;
  } catch (error) {
    if (!isDamage(error)) throw error;
    return undefined;
  }
}
