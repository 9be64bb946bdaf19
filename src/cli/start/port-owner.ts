/** Finds the process that listens on a port of this machine, if the system reports it. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

interface PortOwner {
  /** `node`; undefined for the program of another user. */
  name?: string;
  pid?: number;
}

/** Undefined if no process listens there, or if the system does not report it. */
export function portOwnerOf(port: number): PortOwner | undefined {
  if (process.platform !== "linux") return undefined;
  const sockets = ["tcp", "tcp6"].flatMap((table) => listeningOn(port, linesOf(`/proc/net/${table}`)));
  if (sockets.length === 0) return undefined;
  const wanted = new Set(sockets.map((inode) => `socket:[${inode}]`));
  for (const pid of entriesOf("/proc").filter((entry) => /^\d+$/.test(entry)))
    if (entriesOf(`/proc/${pid}/fd`).some((file) => wanted.has(linkOf(`/proc/${pid}/fd/${file}`))))
      return { name: linesOf(`/proc/${pid}/comm`)[0], pid: Number(pid) };
  return {};
}

/** `node (process 123)`, or `another program`. */
export const describePortOwner = (holder: PortOwner | undefined): string =>
  holder?.pid === undefined ? "another program" : `${holder.name ?? "a program"} (process ${holder.pid})`;

/** `  0: 0100007F:102D 00000000:0000 0A … inode …`: address and port in hexadecimal, 0A is listening. */
function listeningOn(port: number, lines: string[]): string[] {
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = "", , state]) => state === "0A" && Number.parseInt(local.split(":")[1] ?? "", 16) === port)
    .map((columns) => columns[9] ?? "");
}

/** Skips processes that have ended or may not be inspected. */
function attempt<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}

const linesOf = (path: string) => attempt(() => readFileSync(path, "utf8").trim().split("\n"), []);
const entriesOf = (path: string) => attempt(() => readdirSync(path), []);
const linkOf = (path: string) => attempt(() => readlinkSync(path), "");
