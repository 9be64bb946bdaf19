/**
 * Runs a program of which the n-th change of a file below a folder fails, or is the last thing that it does. The changes are
 * counted in the kernel (ptrace), so SQLite's count too, and nothing of ours is replaced.
 *
 * As a program of its own, because it waits without turning its loop: `disk-tracer.ts <folder> <n> <error> <program …>`
 */
import { cc, ptr } from "bun:ffi";
import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** What Linux calls the errors that a disk gives: it is broken, or full. */
const diskErrors = { EIO: 5, ENOSPC: 28 };

export interface Disturbance {
  /** Which change, from 1; 0 disturbs nothing. */
  at: number;
  /** What it fails with; without it, the program ends before the change. */
  error?: keyof typeof diskErrors;
}

interface Traced {
  /** The exit code; 137 for a program that was ended. */
  code: number;
  stdout: string;
  stderr: string;
  /** Each change that began, such as `rename /folder/file`, in order. */
  changes: string[];
}

/** @param folder Without links in its path. */
export async function traced(
  argv: readonly string[],
  folder: string,
  { at, error }: Disturbance,
  env: Record<string, string | undefined> = process.env,
): Promise<Traced> {
  const options = [folder, String(at), String(error ? diskErrors[error] : 0)];
  const child = Bun.spawn([process.execPath, "--no-env-file", import.meta.path, ...options, ...argv], {
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    env: { ...env },
  });
  const [stdout, stderr, changes, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    Bun.file(child.stdio[3] as number).text(),
    child.exited,
  ]);
  return { code, stdout, stderr, changes: changes.split("\n").filter(Boolean) };
}

/** Whether a program can be traced here. */
export function canTrace(): boolean {
  if (process.platform !== "linux" || process.arch !== "x64") return false;
  const argv = ["--no-env-file", import.meta.path, "/", "0", "0", "true"];
  return spawnSync(process.execPath, argv, { stdio: ["ignore", "ignore", "ignore", "ignore"] }).status === 0;
}

if (import.meta.main) {
  const [folder = "", at, error, ...argv] = process.argv.slice(2);
  const text = (each: string) => Buffer.from(`${each}\0`);
  const { symbols } = cc({
    source: join(import.meta.dir, "disk-tracer.c"),
    symbols: { traced: { args: ["ptr", "ptr", "int", "int", "int"], returns: "int" } },
  });
  const texts = argv.map(text);
  const pointers = new BigUint64Array([...texts.map((each) => BigInt(ptr(each))), 0n]);
  process.exit(symbols.traced(ptr(pointers), ptr(text(folder)), Number(at), Number(error), 3));
}
