/** Where a server of this data folder listens: written down by the server, for the other commands. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { isAlive, readPrivate, writePrivate } from "../config/files";

const schema = z.object({ url: z.string().regex(/^http:\/\/[^\s/]+$/), pid: z.int().positive() });
export type Running = z.infer<typeof schema>;

const pathIn = (home: string) => join(home, "running.json");

/** @returns Takes it back, unless another server has taken the place; one that was there before gets it again. */
export function announceRunning(home: string, url: string): () => void {
  const earlier = findRunning(home);
  // Every address is no address to call.
  const reachable = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
  announce(home, { url: reachable, pid: process.pid });
  return () => {
    if (findRunning(home)?.pid !== process.pid) return;
    rmSync(pathIn(home), { force: true });
    if (earlier && isAlive(earlier.pid)) announce(home, earlier);
  };
}

function announce(home: string, running: Running): void {
  try {
    writePrivate(pathIn(home), `${JSON.stringify(running)}\n`);
  } catch {
    // a full disk is no reason not to serve
  }
}

/** The server that runs now, if one does. */
export function findRunning(home: string, { tighten = true } = {}): Running | undefined {
  try {
    const running = schema.parse(JSON.parse(readPrivate(pathIn(home), 4096, { tighten }) ?? ""));
    process.kill(running.pid, 0);
    return running;
  } catch {
    return undefined; // none, or one that was killed
  }
}
