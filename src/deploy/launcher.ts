#!/usr/bin/env node
/**
 * The program of the npm package, for Node 18 or Bun. It becomes the executable in the optional package for this machine.
 * Where that is not installed, Bun runs the bundle beside this file.
 */
import { spawn, spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { isatty } from "node:tty";
import { fileURLToPath } from "node:url";
import { engines } from "../../package.json";
import { packageFor, targets } from "./targets";

const { platform, arch, versions } = process;
const bunNeeded = engines.bun.replace(">=", "");
/** Our packages for this system and processor: on Linux, one for each C library. */
const packages = targets.map(packageFor).filter(({ os, cpu }) => os === platform && cpu === arch);

/** An npm that does not know the field `libc` installs both; then this process tells which it is. */
function executable(): string | undefined {
  const { resolve } = createRequire(import.meta.url);
  const found = packages.flatMap(({ name, file, libc }) => {
    try {
      return [{ path: resolve(`${name}/${file}`), libc }];
    } catch {
      return [];
    }
  });
  if (found.length < 2) return found[0]?.path;
  const { header } = process.report!.getReport() as { header: { glibcVersionRuntime?: string } };
  return found.find(({ libc }) => libc === (header.glibcVersionRuntime ? "glibc" : "musl"))?.path;
}

/** This Bun, or that of the PATH; undefined if it is too old or missing. */
function bun(): string | undefined {
  const isNewEnough = (version: string) => version.localeCompare(bunNeeded, "en", { numeric: true }) >= 0;
  if (versions.bun) return isNewEnough(versions.bun) ? process.execPath : undefined;
  const { stdout } = spawnSync("bun", ["--version"], { encoding: "utf8" });
  return stdout && isNewEnough(stdout.trim()) ? "bun" : undefined;
}

/** Nothing of the folder it is started in is read. */
const bundle = () => [
  ...["--no-env-file", "--config=/dev/null", "--tsconfig-override=/dev/null"],
  fileURLToPath(new URL("main.js", import.meta.url)),
];

/** Replaces this process where the system and Node (22.15) can; else waits for the program, and ends as it ends. */
function become(program: string, args: string[]): void {
  if (process.execve && program !== "bun") process.execve(program, ["dragoman", ...args]);
  // At a terminal, Ctrl+C reaches both; a second one would not let running requests finish.
  const atTerminal = isatty(0) || isatty(2);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
    process.on(signal, () => {
      if (signal === "SIGTERM" || !atTerminal) child.kill(signal);
    });
  const child = spawn(program, args, { stdio: "inherit" });
  child.on("error", ({ message }) => fail(`${program} does not start: ${message}.`));
  child.on("exit", (code, signal) => {
    if (!signal) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

function fail(sentence: string): void {
  console.error(`dragoman: ${sentence}`);
  process.exitCode = 1;
}

const args = process.argv.slice(2);
const installed = executable();
const runtime = installed ? undefined : bun();
if (installed) become(installed, args);
else if (runtime) become(runtime, [...bundle(), ...args]);
else
  fail(
    packages.length === 0
      ? `There is no executable for ${platform}-${arch}. Where Bun ${bunNeeded} runs, dragoman runs with it: https://bun.com`
      : `${packages.map(({ name }) => name).join(" or ")} is not installed. Install dragoman again with its optional packages (without --omit=optional), or install Bun ${bunNeeded}, which can run it too: https://bun.com`,
  );
