/** Holds the history's file open. It may be locked, removed or damaged at any time. */
import type { Database } from "bun:sqlite";
import { type FileContent, fileIdentity, isDamage, mayPass, moveAside, openDatabase } from "../sqlite";
import { migrations, prepareHistory } from "./migrations";

export interface HistoryConnection {
  /** Works on the file that is at the path now. A file that was removed or damaged is replaced. */
  use<T>(work: (database: Database) => T): T;
  /** The same for work that another thread does on the file. */
  read<Answer extends Promise<unknown>>(work: (file: { path: string; identity: string }) => Answer): Answer;
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
  let closed = false;

  const open = (tries?: number): Database => {
    const connected = openDatabase(path, { migrations, content, prepare: prepareHistory, warn, tries });
    identity = fileIdentity(path);
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

  const current = (): Database => {
    if (closed) throw new Error("the history is closed");
    if (database && fileIdentity(path) !== identity) release();
    database ??= open(1);
    return database;
  };
  const replaceIfDamaged = (error: unknown) => {
    if (!isDamage(error)) return;
    release();
    moveAside(path, identity, { content, warn });
  };

  return {
    use(work) {
      const present = current();
      try {
        return work(present);
      } catch (error) {
        replaceIfDamaged(error);
        throw error;
      }
    },
    read(work) {
      current();
      const answer = work({ path, identity: identity! });
      return answer.catch((error) => {
        replaceIfDamaged(error);
        throw error;
      }) as typeof answer;
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
