/** The file in which a server records its address, for the other commands. */
import { rmSync } from "node:fs";
import { z } from "zod";
import { readPrivate, writePrivate } from "../../config/files";
import { inHome } from "../../config/home-names";
import { lazy } from "../../lib/lazy";
import { bornAt, isStill } from "./shutdown";

const schema = lazy(() =>
  z.object({
    url: z.string().regex(/^http:\/\/[^\s/]+$/),
    pid: z.int().positive(),
    /** When the process began, which tells it from a later one with its id; empty where the system does not say. */
    born: z.string().default(""),
    /** It ends with the program that started it. */
    isTied: z.boolean().optional(),
  }),
);
export type Instance = z.infer<ReturnType<typeof schema>>;

const pathIn = (home: string) => inHome(home, "running");

/**
 * @param own The address of this server, which listens already.
 * @returns Removes the record unless another server has replaced it, and restores the record of a server that was there before.
 */
export function writeInstanceFile(home: string, own: Pick<Instance, "url" | "isTied">): () => void {
  const { url } = own;
  const neighbour = findNeighbour(home, url);
  const { pid } = process;
  write(home, { ...own, pid, born: bornAt(pid) ?? "" });
  return () => {
    const note = read(home);
    if (note?.pid !== process.pid || note.url !== url) return;
    rmSync(pathIn(home), { force: true });
    if (neighbour && isOurs(neighbour)) write(home, neighbour);
  };
}

/**
 * Another server of this data folder. Where the system does not say when a process began, it may be another program by now.
 * A record of our own address was left by a server that was killed, and its process id is in use again.
 */
export function findNeighbour(home: string, url: string): Instance | undefined {
  const found = findInstance(home);
  return found?.url === url ? undefined : found;
}

/**
 * The running server, if there is one. A record with our own process id was left by a server that was killed: in a container
 * every server is process 1.
 */
export function findInstance(home: string, { tighten = true } = {}): Instance | undefined {
  const note = read(home, tighten);
  return note && note.pid !== process.pid && isOurs(note) ? note : undefined;
}

/** Whether the process still runs and belongs to the same user. */
function isOurs({ pid, born }: Instance): boolean {
  try {
    return process.kill(pid, 0) && isStill(bornAt(pid), born);
  } catch {
    return false; // it ended, or belongs to another user
  }
}

function write(home: string, running: Instance): void {
  try {
    writePrivate(pathIn(home), `${JSON.stringify(running)}\n`);
  } catch {
    // the server runs without the record
  }
}

function read(home: string, tighten = true): Instance | undefined {
  try {
    const text = readPrivate(pathIn(home), 4096, { tighten });
    return text === undefined ? undefined : schema().parse(JSON.parse(text));
  } catch {
    return undefined; // not valid
  }
}
