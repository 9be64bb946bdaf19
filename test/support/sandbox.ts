/** What this machine allows a test to do to it, and what it says of a process. */
import { describe, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { canTrace } from "./disk-tracer";
import { versionBefore } from "./version-before";

const linux = process.platform === "linux";
/** Whether a command ends well here; one whose program is missing does not. */
const works = (...command: string[]) =>
  linux && Bun.which(command[0]!) !== null && Bun.spawnSync(command, { stdout: "ignore", stderr: "ignore" }).success;

/** What a test may need: a sentence where the machine lacks it. */
const needs = {
  linux: () => (linux ? undefined : "/proc of Linux"),
  /** A user and its mounts of our own. */
  mounts: () =>
    works("unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt") ? undefined : "namespaces of users and mounts",
  /** Process ids of our own, as in a container. */
  processes: () =>
    works("unshare", "-Urpf", "--kill-child", "--mount-proc", "true") ? undefined : "namespaces of processes",
  /** Networks of our own. */
  networks: () => (works("unshare", "-Urn", "ip", "link", "set", "lo", "up") ? undefined : "namespaces of networks"),
  /** Another user to be. */
  users: () => (process.getuid?.() === 0 && works("setpriv", "--version") ? undefined : "root, to be somebody else"),
  /** A limit of the system's own on memory. */
  memoryLimits: () => {
    using group = limitedGroup();
    return group ? undefined : "control groups that may be made";
  },
  /** Everything a container has of its own: mounts, processes, a network, and a user without rights. */
  containers: () =>
    process.getuid?.() === 0 &&
    ["setpriv", "nsenter", "chroot", "curl"].every((program) => Bun.which(program)) &&
    works("unshare", "-mpfn", "--propagation", "private", "sh", "-c", "ip link set lo up && mount -t tmpfs tmpfs /mnt")
      ? undefined
      : "root and namespaces, as a container has them",
  /** A user's service manager, started by `support/systemd.ts`. */
  systemd: () =>
    process.getuid?.() === 0 &&
    // A Bun in a folder of root's own, where npx puts it, can be run by nobody else; setpriv itself still could.
    works("setpriv", "--reuid=65534", "--clear-groups", "env", process.execPath, "--version") &&
    existsSync("/lib/systemd/systemd") &&
    existsSync("/lib/systemd/systemd-journald") &&
    Bun.which("dbus-daemon") !== null &&
    works("unshare", "-m", "sh", "-c", "umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup")
      ? undefined
      : "systemd, root to start it for somebody else, and a Bun that others may run",
  openssl: () => (works("openssl", "version") ? undefined : "openssl"),
  prometheus: () =>
    Bun.which("prometheus") && Bun.which("promtool") ? undefined : "prometheus and promtool (Debian: prometheus)",
  pgbouncer: () =>
    Bun.which("pgbouncer") && (process.getuid?.() !== 0 || works("setpriv", "--version"))
      ? undefined
      : "PgBouncer (Debian: pgbouncer)",
  caddy: () => (Bun.which("caddy") ? undefined : "Caddy (Debian: caddy)"),
  fewFiles: () => (works("prlimit", "--version") ? undefined : "prlimit"),
  tracing: () => (canTrace() ? undefined : "Linux on x86-64, and the right to trace a program"),
  versionBefore: () => (versionBefore() ? undefined : "a tag of a version before this one"),
  oneCore: () => (works("taskset", "--version") ? undefined : "taskset"),
};

type Need = keyof typeof needs;

/** A test that needs something of the machine: where it is missing, the test is skipped and its name says what is. */
export function testWith(need: Need, name: string, body: () => unknown, timeout?: number): void {
  const missing = needs[need]();
  if (missing === undefined) test(name, body as () => void, timeout);
  else test.skip(`${name} (this machine lacks ${missing})`, body as () => void);
}

/** As `testWith`, for several that share what they start. */
export function describeWith(need: Need, name: string, body: () => void): void {
  const missing = needs[need]();
  if (missing === undefined) describe(name, body);
  else test.skip(`${name} (this machine lacks ${missing})`, () => {});
}

/** MiB of memory that a process holds now, or held at most; 0 where the system does not tell. */
export function memoryOf(pid: number, which: "VmRSS" | "VmHWM" = "VmRSS"): number {
  if (!linux) return 0;
  return Number(new RegExp(`${which}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
}

/** Seconds of processor time that a process has used. */
export function processorTimeOf(pid: number): number {
  const [, rest = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const fields = rest.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Milliseconds that a process' main thread was ready to run and others ran instead; 0 where the system does not tell. */
export function keptWaiting(pid: number): number {
  const file = `/proc/${pid}/schedstat`;
  return existsSync(file) ? Number(readFileSync(file, "utf8").split(" ")[1]) / 1e6 : 0;
}

export interface MemoryLimit extends Disposable {
  /** From now on the process and its children live in it. */
  holds(pid: number): void;
}

/** A control group with so much memory and no swap; undefined where none may be made. */
export function limitedGroup(mebibytes = 512): MemoryLimit | undefined {
  const root = existsSync("/sys/fs/cgroup/memory") ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
  const path = `${root}/dragoman-test-${process.pid}-${Math.random().toString(36).slice(2)}`;
  const file = root.endsWith("memory") ? "memory.limit_in_bytes" : "memory.max";
  try {
    mkdirSync(path);
  } catch {
    return undefined;
  }
  const remove = () => rmdirSync(path);
  try {
    writeFileSync(`${path}/${file}`, String(mebibytes * 1024 * 1024));
  } catch {
    remove();
    return undefined;
  }
  return { holds: (pid) => writeFileSync(`${path}/cgroup.procs`, String(pid)), [Symbol.dispose]: remove };
}

/** From now on `VmHWM` is the most that the process holds after this moment. */
export function forgetPeak(pid: number): void {
  if (linux) writeFileSync(`/proc/${pid}/clear_refs`, "5");
}
