/** Where a server of this data folder listens: written down by the server, for the other commands. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { readPrivate, writePrivate } from "../../config/files";
import { lazy } from "../../lazy";

const schema = lazy(() => z.object({ url: z.string().regex(/^http:\/\/[^\s/]+$/), pid: z.int().positive() }));
export type Instance = z.infer<ReturnType<typeof schema>>;

const pathIn = (home: string) => join(home, "running.json");

/**
 * @param url Where we listen by now, so that nobody else can.
 * @returns Takes it back, unless another server has taken the place; a neighbour that was there before gets it again.
 */
export function writeInstanceFile(home: string, url: string): () => void {
  const neighbour = findNeighbour(home, url);
  write(home, { url, pid: process.pid });
  return () => {
    const note = read(home);
    if (note?.pid !== process.pid || note.url !== url) return;
    rmSync(pathIn(home), { force: true });
    if (neighbour && isOurs(neighbour.pid)) write(home, neighbour);
  };
}

/**
 * Another server of this data folder, which serves beside us: its process lives, but may be another program by now. A
 * note of the address where we listen is not one: a killed server had it, and its process id is taken again.
 */
export function findNeighbour(home: string, url: string): Instance | undefined {
  const found = findInstance(home);
  return found?.url === url ? undefined : found;
}

/**
 * The server that runs now, if one does. A note of our own process id is nobody's: in a container every server is
 * process 1, also the one that was killed before us.
 */
export function findInstance(home: string, { tighten = true } = {}): Instance | undefined {
  const note = read(home, tighten);
  return note && note.pid !== process.pid && isOurs(note.pid) ? note : undefined;
}

/** Whether a process of this id runs for the same person as we do. */
function isOurs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false; // gone, or somebody else's
  }
}

function write(home: string, running: Instance): void {
  try {
    writePrivate(pathIn(home), `${JSON.stringify(running)}\n`);
  } catch {
    // a full disk is no reason not to serve
  }
}

function read(home: string, tighten = true): Instance | undefined {
  try {
    return schema().parse(JSON.parse(readPrivate(pathIn(home), 4096, { tighten }) ?? ""));
  } catch {
    return undefined; // none, or one that does not read
  }
}
