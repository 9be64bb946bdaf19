/** Replaces this executable by that of the newest release, after its checksum and its attestation were verified. */
import { accessSync, constants, realpathSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TrustedRoot } from "@sigstore/protobuf-specs";
import type { Environment } from "../../config/environment";
import { ProxyError } from "../../errors";
import { buildStamp } from "../build-stamp";
import { type Installation, type InstallationKind, installationOf } from "../installation";
import { waitUntilReady } from "../readiness";
import { restartService } from "../service/service";
import { agreedTo, print, say, shortened, withProgress } from "../terminal";
import { download } from "./download";
import { attestationsOf, latestRelease, type Release, type ReleaseSource, releaseSource } from "./releases";
import { replaceProgram } from "./replace";

export interface UpdateOptions {
  version: string;
  environment: Environment;
  /** Only say whether there is a newer version. */
  check: boolean;
  /** Do not ask. */
  yes: boolean;
  /** By default: of this program and this build. */
  installation?: Installation;
  source?: ReleaseSource;
  target?: string;
  /** Milliseconds until a restarted service must be ready. */
  readyMs?: number;
  /** Which makers of attestations are trusted; those of Sigstore by default. */
  trust?: () => Promise<TrustedRoot>;
}

/** What to do where dragoman cannot replace itself. */
const advice: Record<Exclude<InstallationKind, "executable">, string> = {
  brew: "Homebrew installed it. Run: brew upgrade dragoman",
  scoop: "Scoop installed it. Run: scoop update dragoman",
  winget: "winget installed it. Run: winget upgrade dragoman",
  container: "It runs in a container. Get the new image, and start a container of it with the same volume.",
  npm: "npm installed it. Run: npm install -g dragoman@latest",
  bun: "Bun installed it. Run: bun add -g dragoman@latest",
  bunx: "bunx or npx runs it from a temporary copy. Run: bunx dragoman@latest start",
  source: "It runs from a clone of its repository. Run: git pull && bun install",
};

/** @returns The exit code. @throws ProxyError, UsageError; nothing has changed then */
export async function update(options: UpdateOptions): Promise<number> {
  const { version, environment, check } = options;
  const installation = options.installation ?? installationOf();
  const source = options.source ?? releaseSource(environment);
  if (!source) {
    if (installation.kind !== "executable") return tellOwnWay(installation.kind);
    throw new ProxyError("internal", "This is a local build. Run `git pull && bun run build` to update it.");
  }
  const release = await withProgress("Looking for the newest release", () => latestRelease(source, version));
  if (Bun.semver.order(release.version, version) <= 0) {
    print(`dragoman ${version} is the newest version.`);
    return 0;
  }
  print(`dragoman ${release.version} is available; this is ${version}.`);
  if (installation.kind !== "executable") return tellOwnWay(installation.kind);
  if (check) return 0;
  return install(options, installation, source, release);
}

function tellOwnWay(kind: keyof typeof advice): number {
  print(advice[kind]);
  return 0;
}

async function install(
  options: UpdateOptions,
  { command: [program] }: Installation,
  source: ReleaseSource,
  release: Release,
): Promise<number> {
  const path = realpathSync(program);
  requireWritable(dirname(path));
  if (!options.yes && !(await agreed(release, path))) {
    say("Nothing was changed.");
    return 1;
  }
  // In the same folder, so that it can be renamed into its place.
  const fresh = join(dirname(path), `.dragoman-update-${process.pid}${path.endsWith(".exe") ? ".exe" : ""}`);
  rmSync(fresh, { force: true });
  try {
    await fetchVerified(options, source, release, fresh);
    checkRuns(fresh, release.version);
    const replacement = replaceProgram(path, fresh);
    return await keepOrUndo(options, replacement, path, release);
  } finally {
    rmSync(fresh, { force: true });
  }
}

async function fetchVerified(options: UpdateOptions, source: ReleaseSource, release: Release, fresh: string) {
  const { version, trust } = options;
  const target = options.target ?? buildStamp.target ?? `${process.platform}-${process.arch}`;
  const name = `dragoman-${release.version}-${target}${target.startsWith("windows") ? ".exe" : ""}`;
  const end = showProgress(name);
  const sha256 = await download(release, name, fresh, version, end.progress).finally(end.done);
  // Together they are a megabyte of code, which nothing else needs.
  const [{ faultOfProvenance }, { currentTrust }] = await Promise.all([
    import("./provenance"),
    import("./sigstore-root"),
  ]);
  const [bundles, root] = await withProgress(
    "Verifying its attestation",
    async () => [await attestationsOf(source, sha256, version), await (trust ?? currentTrust)()] as const,
  );
  const expected = { name, sha256, repository: source.repository, tag: release.tag };
  const faults = bundles.map((bundle) => faultOfProvenance(bundle, expected, root));
  if (!faults.includes(undefined))
    throw new ProxyError(
      "upstream",
      `The attestation of ${name} does not prove that ${source.repository} has built it: ${faults[0] ?? "there is none"}. Nothing was changed.`,
    );
  say("Its checksum is right, and its attestation names the project's release workflow.");
}

/** @throws ProxyError if the new executable does not start here */
function checkRuns(path: string, version: string): void {
  const { stdout, exitCode } = Bun.spawnSync([path, "--version"], {
    timeout: 20_000,
    stdio: ["ignore", "pipe", "ignore"],
  });
  if (exitCode === 0 && stdout.toString().trim() === version) return;
  throw new ProxyError("internal", "The new executable does not run on this system. Nothing was changed.");
}

type Outcome = ReturnType<typeof replaceProgram>;

/** Restarts an installed service. If it is not ready again, the old executable comes back. */
async function keepOrUndo(
  { environment, version, readyMs = 20_000 }: UpdateOptions,
  replacement: Outcome,
  path: string,
  release: Release,
): Promise<number> {
  try {
    checkRuns(path, release.version);
    if (!startAgain(environment, release)) {
      replacement.settle();
      say(`${shortened(path)} is dragoman ${release.version} now. Restart a running server to use it.`);
      return 0;
    }
    const ready = await waitUntilReady(environment, { demo: false, timeoutMs: readyMs });
    if (!ready) throw new ProxyError("internal", `The service is not ready with version ${release.version}.`);
    replacement.settle();
    say(`${shortened(path)} is dragoman ${release.version} now, and the service at ${ready.url} runs it.`);
    return 0;
  } catch (thrown) {
    replacement.undo();
    say(`dragoman ${version} is back in its place.`);
    restartService(environment);
    throw thrown;
  }
}

/** @returns False if no service is installed. @throws ProxyError */
function startAgain(environment: Environment, { version }: Release): boolean {
  try {
    return restartService(environment);
  } catch (thrown) {
    throw new ProxyError("internal", `The service did not start with version ${version}.`, { cause: thrown });
  }
}

function requireWritable(folder: string): void {
  try {
    accessSync(folder, constants.W_OK);
  } catch {
    throw new ProxyError(
      "permission",
      `You may not write to ${folder}. Run this as the owner of that folder, or download the new executable yourself.`,
    );
  }
}

const agreed = ({ version }: Release, path: string) =>
  agreedTo(`Replace ${shortened(path)} by version ${version}?`, true, ", or --check to look");

/** A line at a terminal, updated each megabyte. */
function showProgress(name: string) {
  if (!process.stderr.isTTY) return { progress: () => {}, done: () => {} };
  let shown = -1;
  return {
    progress(bytes: number) {
      const megabytes = Math.floor(bytes / 1e6);
      if (megabytes === shown) return;
      shown = megabytes;
      process.stderr.write(`\rDownloading ${name}: ${megabytes} MB\x1b[K`);
    },
    done: () => void process.stderr.write("\r\x1b[K"),
  };
}
