/** Where a server of this data folder listens: written down by the server, for the other commands. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { readPrivate, writePrivate } from "../config/files";

const schema = z.object({ url: z.string().regex(/^http:\/\/[^\s/]+$/), pid: z.int().positive() });
export type Running = z.infer<typeof schema>;

const pathIn = (home: string) => join(home, "running.json");

/** @returns Takes it back, unless another server has taken the place. */
export function announceRunning(home: string, url: string): () => void {
  // Every address is no address to call.
  const reachable = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
  try {
    writePrivate(pathIn(home), `${JSON.stringify({ url: reachable, pid: process.pid })}\n`);
  } catch {
    return () => {}; // a full disk is no reason not to serve
  }
  return () => {
    if (findRunning(home)?.pid === process.pid) rmSync(pathIn(home), { force: true });
  };
}

/** The server that runs now, if one does. */
export function findRunning(home: string): Running | undefined {
  try {
    const running = schema.parse(JSON.parse(readPrivate(pathIn(home), 4096) ?? ""));
    process.kill(running.pid, 0);
    return running;
  } catch {
    return undefined; // none, or one that was killed
  }
}
