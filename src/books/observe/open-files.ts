/** The open files and sockets of a process, and how many it may have. */
import { readdirSync, readFileSync } from "node:fs";

interface OpenFiles {
  open: number;
  /** Undefined if there is none. */
  limit: number | undefined;
}

/**
 * Linux only (proc(5)).
 * @returns Undefined if the system does not tell: on other systems, or of another person's process.
 */
export function openFilesOf(pid: number | "self"): OpenFiles | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, "utf8"))?.[1];
    return { open: readdirSync(`/proc/${pid}/fd`).length, limit: limit === undefined ? undefined : Number(limit) };
  } catch {
    return undefined;
  }
}
