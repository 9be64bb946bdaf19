/** The processes of the bench: each kept to a core, so that none takes another's time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/free-port";
import type { Job } from "./load";
import { cpuOf } from "./statistics";

const root = join(import.meta.dir, "../..");
const taskset = Bun.which("taskset");
const cores = navigator.hardwareConcurrency;

/** The proxies have the last core for themselves. */
const pinned = (side: "proxy" | "others", command: string[]) =>
  taskset && cores > 1 ? [taskset, "-c", side === "proxy" ? `${cores - 1}` : `0-${cores - 2}`, ...command] : command;

const environment = {
  PATH: process.env.PATH ?? "",
  HOME: process.env.HOME ?? "",
  NO_PROXY: "*",
  BUN_CONFIG_MAX_HTTP_REQUESTS: "4096",
};

export interface Running {
  url: string;
  /** With which it has to be asked. */
  headers?: Record<string, string>;
  pid: number;
  stop(): Promise<void>;
}

export async function startUpstream(): Promise<Running> {
  return startScript("others", "upstream.ts");
}

/** Takes traces. */
export const startCollector = (): Promise<Running> => startScript("others", "collector.ts");

export type Floor = "bun" | "elysia" | "pull" | "parse" | "translate" | "guarantees";

export async function startFloor(kind: Floor, upstream: Running): Promise<Running> {
  const folder = newFolder();
  const floor = await startScript("proxy", "baselines.ts", kind, upstream.url, folder);
  return { ...floor, stop: () => floor.stop().finally(() => rmSync(folder, { recursive: true, force: true })) };
}

async function startScript(side: "proxy" | "others", ...[file, ...given]: [string, ...string[]]): Promise<Running> {
  const child = Bun.spawn(pinned(side, [process.execPath, join(import.meta.dir, file), ...given]), {
    stdout: "pipe",
    stderr: "inherit",
    env: environment,
  });
  const reader = child.stdout.getReader();
  const port = Buffer.from((await reader.read()).value!)
    .toString()
    .trim();
  return running(child, `http://127.0.0.1:${port}`);
}

/** The source, of another checkout where the environment names one; and what it names of the executable and of the published package: `dist/main.js`. */
export const subjects = {
  source: [process.execPath, "--no-env-file", join(process.env.DRAGOMAN_CHECKOUT ?? root, "src/main.ts")],
  bundle: process.env.DRAGOMAN_BUNDLE ? [process.execPath, "--no-env-file", process.env.DRAGOMAN_BUNDLE] : undefined,
  executable: process.env.DRAGOMAN_BINARY ? [process.env.DRAGOMAN_BINARY] : undefined,
};

export interface Started extends Running {
  /** Milliseconds from the start to the first answer. */
  startMs: number;
  /** Milliseconds of CPU until then. */
  startCpuMs: number;
}

/**
 * @param home A data folder; a new one, thrown away in the end, when missing.
 * @param env More variables.
 */
export function startDragoman(
  command: string[],
  upstream: Running,
  home = newFolder(),
  env: Record<string, string> = {},
): Promise<Started> {
  return startProxy((port) => [...command, "start", "--port", String(port)], upstream, home, env);
}

/** Milliseconds. */
const startWithin = 60_000;

/** @param command Of a proxy that listens on this port and answers GET /. */
export async function startProxy(
  command: (port: number) => string[],
  upstream: Running,
  home = newFolder(),
  env: Record<string, string> = {},
): Promise<Started> {
  const port = freePort();
  const begun = performance.now();
  const child = Bun.spawn(pinned("proxy", command(port)), {
    stdout: "ignore",
    stderr: Bun.file(join(home, "lines.txt")),
    env: {
      ...environment,
      HOME: home,
      DRAGOMAN_HOME: home,
      DRAGOMAN_GITHUB_TOKEN: "ghu_0123456789abcdefghij",
      DRAGOMAN_GITHUB_URL: upstream.url,
      DRAGOMAN_GITHUB_API_URL: upstream.url,
      ...env,
    },
  });
  const url = `http://127.0.0.1:${port}`;
  while (!(await answers(url))) {
    if (performance.now() - begun > startWithin) child.kill("SIGKILL");
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`It did not start: ${await Bun.file(join(home, "lines.txt")).text()}`);
    await Bun.sleep(1);
  }
  const startMs = performance.now() - begun;
  const startCpuMs = cpuOf(child.pid) * 1000;
  const process_ = running(child, url);
  return {
    ...process_,
    startMs,
    startCpuMs,
    async stop() {
      await process_.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

export const newFolder = () => mkdtempSync(join(tmpdir(), "dragoman-bench-"));

function running(child: Bun.Subprocess, url: string): Running {
  return {
    url,
    pid: child.pid,
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

/** Milliseconds that the longest job takes on a busy machine. */
const jobWithin = 240_000;

/** What the clients make of a job. */
export async function load<T>(job: Job): Promise<T> {
  const child = Bun.spawn(pinned("others", [process.execPath, join(import.meta.dir, "load.ts")]), {
    stdin: Buffer.from(JSON.stringify(job)),
    stdout: "pipe",
    stderr: "inherit",
    env: environment,
    timeout: jobWithin,
  });
  const text = await child.stdout.text();
  if ((await child.exited) !== 0)
    throw new Error(`The clients failed at ${job.kind} of ${job.url}, or took four minutes.`);
  return JSON.parse(text) as T;
}
