/** What is read of a process, and numbers made of many. */
import { readdirSync, readFileSync } from "node:fs";

/** Seconds of CPU that all threads of a process took, those that have ended included. */
export function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

// What Linux says to user space, whatever the kernel's own clock.
const ticksPerSecond = 100;

/** Seconds of CPU meanwhile, to the nanosecond; without that of threads that ended. */
export async function workIn(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = workOfThreads(pid);
  await work();
  let sum = 0;
  for (const [thread, seconds] of workOfThreads(pid)) sum += seconds - (before.get(thread) ?? 0);
  return sum;
}

function workOfThreads(pid: number): Map<string, number> {
  const folder = `/proc/${pid}/task`;
  const found = new Map<string, number>();
  for (const thread of readdirSync(folder))
    try {
      found.set(thread, Number(readFileSync(`${folder}/${thread}/schedstat`, "utf8").split(" ")[0]) / 1e9);
    } catch {
      // It has just ended.
    }
  return found;
}

/** MiB. */
export function rssOf(pid: number): number {
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

/** The most memory a process has while the work is done, beyond what it had before: MiB. */
export async function growthOf<T>(pid: number, work: () => Promise<T>): Promise<{ result: T; growth: number }> {
  const before = rssOf(pid);
  let max = before;
  const timer = setInterval(() => {
    max = Math.max(max, rssOf(pid));
  }, 20);
  try {
    const result = await work();
    return { result, growth: Math.max(max, rssOf(pid)) - before };
  } finally {
    clearInterval(timer);
  }
}

/** @param share 0.5 is the median. */
export function quantile(numbers: number[], share: number): number {
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function machine(): string {
  const [, model = process.arch] = /^model name\s*:\s*(.+)$/m.exec(readFileSync("/proc/cpuinfo", "utf8")) ?? [];
  const cores = readdirSync("/sys/devices/system/cpu").filter((name) => /^cpu\d+$/.test(name)).length;
  return `${cores} × ${model}, Linux, Bun ${Bun.version}`;
}

/** As Markdown: the first column has names, the others numbers. */
export const markdown = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [head, head.map((_, at) => (at === 0 ? "---" : "--:")), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
