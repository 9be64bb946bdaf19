/** Why a port cannot be had: the process that listens there, if the system reports it, or the system itself. */
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

/** Why the system keeps a port from a program (EACCES), and what to do, in a sentence each. */
export function refusedPort(port: number, platform: NodeJS.Platform = process.platform): [why: string, todo: string] {
  if (port < 1024 && platform !== "win32")
    return [`Port ${port} needs administrator rights.`, "Choose a port above 1023 with --port."];
  // Hyper-V and WSL reserve ranges of ports: https://learn.microsoft.com/windows-server/networking/technologies/netsh/netsh-interface (2026-11).
  const reserved =
    platform === "win32"
      ? " `netsh interface ipv4 show excludedportrange protocol=tcp` lists those that Windows reserves."
      : "";
  return [`The system does not allow port ${port}.`, `Choose another port with --port.${reserved}`];
}

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
