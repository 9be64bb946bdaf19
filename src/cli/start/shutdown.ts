/** Stops a running server at a signal, when its stdin closes, or when its parent process ends. */
import { readFileSync } from "node:fs";
import { isAlive } from "../../config/files";
import { ProxyError } from "../../lib/errors";

interface Lifetime {
  /** Settles when stdin ends; undefined if that does not stop the server. */
  stdinEnded?: Promise<void>;
  /** The process whose end stops the server. */
  parentPid?: number;
  /** Milliseconds that running requests get after a signal; health checks are answered meanwhile. */
  drainMs?: number;
}

interface Ending {
  /** A sentence. */
  why: string;
  /** Milliseconds that running requests get to finish. */
  grace: number;
  /** Health checks are answered meanwhile, and for so many milliseconds new requests too; undefined if neither. */
  noticeMs: number | undefined;
}

export interface ShutdownSignals {
  /** The first reason to stop. */
  first: Promise<Ending>;
  /** Settles afterwards: `urged` by another signal, or `late` when the time is over. */
  over: Promise<"urged" | "late">;
}

/** Milliseconds that running requests get after a signal, if the owner sets no other time. */
const signalGrace = 30_000;

/** Milliseconds until load balancers that look every two seconds have noticed that this server stops. */
const longestNotice = 5_000;

/** The same after the parent has ended, when nobody reads the answers. The whole shutdown then takes less than two seconds. */
const orphanGrace = 700;
const parentInterval = 200;

/** Starts watching. @throws ProxyError if the parent is not running */
export function watchShutdown({ stdinEnded, parentPid, drainMs }: Lifetime): ShutdownSignals {
  const first = Promise.withResolvers<Ending>();
  const over = Promise.withResolvers<"urged" | "late">();
  let ending = false;
  const end = (why: string, grace: number, noticeMs?: number) => {
    ending = true;
    first.resolve({ why, grace, noticeMs });
    setTimeout(() => over.resolve("late"), grace);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    if (signal === "SIGHUP" && ignoresHangup()) continue;
    process.on(signal, () =>
      ending
        ? over.resolve("urged")
        : end(signal, drainMs ?? signalGrace, drainMs && Math.min(longestNotice, drainMs / 4)),
    );
  }
  void stdinEnded?.then(() => end("Stdin was closed", orphanGrace));
  if (parentPid !== undefined)
    watchProcess(parentPid, () => end(`Process ${parentPid}, given by --parent-pid, ended`, orphanGrace));
  return { first: first.promise, over: over.promise };
}

/** Whether `nohup` started it: the end of its terminal is not to end it. Only Linux says so (`man proc_pid_status`). */
function ignoresHangup(): boolean {
  if (process.platform !== "linux") return false;
  const [, ignored = "0"] = /^SigIgn:\s*([\da-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return (Number.parseInt(ignored.slice(-1), 16) & 1) === 1;
}

function watchProcess(pid: number, gone: () => void): void {
  const born = bornAt(pid);
  if (born === undefined)
    throw new ProxyError("internal", `Process ${pid}, given by --parent-pid, is not running.`, {
      code: "parent_not_running",
    });
  // If it is our own parent, `process.ppid` changes at once when it ends.
  const ours = process.ppid === pid;
  const timer = setInterval(() => {
    if (isStill(bornAt(pid), born) && (!ours || process.ppid === pid)) return;
    clearInterval(timer);
    gone();
  }, parentInterval);
}

/** Whether the process is still the same. If the system does not say, it counts as running. */
export const isStill = (now: string | undefined, born: string): boolean =>
  now === born || now === "" || (born === "" && now !== undefined);

/**
 * The start time of a process, which distinguishes it from a later one with the same id; empty if the system does not
 * report it. Undefined if the process has ended, even as a zombie.
 */
export function bornAt(pid: number): string | undefined {
  try {
    const [state, ...fields] = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return state === "Z" || state === "X" ? undefined : fields[18];
  } catch {
    return isAlive(pid) ? "" : undefined;
  }
}
