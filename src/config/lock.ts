/**
 * One process at a time. The lock is one that the system keeps for SQLite: it falls with its holder, also by `kill -9`,
 * so nobody ever has to judge from a process id and a start time whether a lock that was left behind is stale.
 */
import { Database } from "bun:sqlite";
import { closeSync, openSync } from "node:fs";
import { ProxyError } from "../errors";

/** Milliseconds. The work under the lock takes a few. */
const timeoutMs = 5_000;

/**
 * Does the work while no other process does work under the same lock. It must be done when it returns: to open and close
 * the file a second time, in the same process, would lift the lock.
 * @param path A file for the lock alone; made where it is missing, and never removed.
 * @throws ProxyError `conflict` when another process holds it for too long; the system's own error when there can be none.
 */
export async function withLock<T>(path: string, work: () => T): Promise<T> {
  closeSync(openSync(path, "a", 0o600));
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const lock = take(path);
    if (!lock) {
      if (performance.now() > deadline) throw held();
      await Bun.sleep(2 + Math.random() * 20);
      continue;
    }
    try {
      return work();
    } finally {
      lock.close();
    }
  }
}

function take(path: string): Database | undefined {
  const database = new Database(path, { readwrite: true });
  try {
    database.run("BEGIN IMMEDIATE");
    return database;
  } catch (thrown) {
    database.close();
    if (thrown instanceof Error && "code" in thrown && /^SQLITE_(?:BUSY|LOCKED)/.test(String(thrown.code))) return;
    throw thrown;
  }
}

const held = () =>
  new ProxyError("conflict", "Another dragoman is writing right now; try again in a moment.", {
    code: "config_conflict",
  });
