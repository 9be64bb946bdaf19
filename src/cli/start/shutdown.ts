/** Stops a running server at a signal, when its stdin closes, or when its parent process ends. */
import { readFileSync } from "node:fs";
import { isAlive } from "../../config/files";
import { ProxyError } from "../../errors";

export interface Lifetime {
  /** Settles when stdin ends; missing where that is no reason to stop. */
  stdinEnded?: Promise<void>;
  /** The process we live for. */
  parentPid?: number;
}

export interface ShutdownSignals {
  /** The first reason to stop: who lets go, in words, and how long running exchanges may go on, in milliseconds. */
  first: Promise<{ why: string; grace: number }>;
  /** Settles after it: `urged` by a further signal, or `late` when the time is over. */
  over: Promise<"urged" | "late">;
}

/** Milliseconds that running exchanges get at a signal. */
const signalGrace = 30_000;

/** The same where whoever read the answers is gone: with a look at the parent and the last words, it all takes below two seconds. */
const orphanGrace = 700;
const parentInterval = 200;

/** Watches from now on. @throws ProxyError when the parent does not run. */
export function watchShutdown({ stdinEnded, parentPid }: Lifetime): ShutdownSignals {
  const first = Promise.withResolvers<{ why: string; grace: number }>();
  const over = Promise.withResolvers<"urged" | "late">();
  let ending = false;
  const end = (why: string, grace: number) => {
    ending = true;
    first.resolve({ why, grace });
    setTimeout(() => over.resolve("late"), grace);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => (ending ? over.resolve("urged") : end(signal, signalGrace)));
  void stdinEnded?.then(() => end("Stdin was closed", orphanGrace));
  if (parentPid !== undefined)
    watchProcess(parentPid, () => end(`Process ${parentPid}, given by --parent-pid, ended`, orphanGrace));
  return { first: first.promise, over: over.promise };
}

function watchProcess(pid: number, gone: () => void): void {
  const born = bornAt(pid);
  if (born === undefined) throw new ProxyError("internal", `Process ${pid}, given by --parent-pid, is not running.`);
  // Our own parent's id changes at once when it dies.
  const ours = process.ppid === pid;
  const timer = setInterval(() => {
    if (isStill(bornAt(pid), born) && (!ours || process.ppid === pid)) return;
    clearInterval(timer);
    gone();
  }, parentInterval);
}

/** What the system does not say, or not just now, where no file can be opened, is no end. */
const isStill = (now: string | undefined, born: string): boolean =>
  now === born || now === "" || (born === "" && now !== undefined);

/**
 * What tells a process from a later one of the same id; empty where the system does not say it. Undefined when it has
 * ended, also when nobody has asked for its exit code yet.
 */
function bornAt(pid: number): string | undefined {
  try {
    const [state, ...fields] = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return state === "Z" || state === "X" ? undefined : fields[18];
  } catch {
    return isAlive(pid) ? "" : undefined;
  }
}
