/**
 * A lock between processes. It is SQLite's file lock: the system releases it when its process ends, even by `kill -9`, so
 * there are no stale locks to detect.
 */
import { Database } from "bun:sqlite";
import { closeSync, openSync } from "node:fs";
import type { Awaitable } from "../lib/awaitable";
import { ProxyError } from "../lib/errors";

/** Milliseconds for which a lock is waited for. Most work under one takes a few. */
const usualWaitMs = 5_000;

/**
 * Runs `work` while no other process holds the lock. `work` is synchronous in a process that takes the lock
 * more than once: opening and closing the file again would release it.
 * @param path A file only for the lock; created if missing, and never removed.
 * @param waitMs Milliseconds until it fails because another process holds the lock.
 * @throws ProxyError `conflict` if another process holds the lock for too long; the system's own error if the file cannot be locked.
 */
export async function withLock<T>(path: string, work: () => Awaitable<T>, waitMs = usualWaitMs): Promise<T> {
  closeSync(openSync(path, "a", 0o600));
  const deadline = performance.now() + waitMs;
  for (;;) {
    const lock = take(path);
    if (!lock) {
      if (performance.now() > deadline) throw held();
      await Bun.sleep(2 + Math.random() * 20);
      continue;
    }
    try {
      return await work();
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
