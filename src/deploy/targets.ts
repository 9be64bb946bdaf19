/** The machines an executable is made for, and what must be found in it. */
import { version } from "../../package.json";
import type { Anatomy } from "./binary-layout";

export interface Target extends Anatomy {
  /** As in the file's name. */
  name: string;
  /** The same to Bun. */
  bun: string;
}

export const targets: readonly Target[] = [
  elf("linux-x64", "x64", "/lib64/ld-linux-x86-64.so.2"),
  elf("linux-arm64", "arm64", "/lib/ld-linux-aarch64.so.1"),
  elf("linux-x64-musl", "x64", "/lib/ld-musl-x86_64.so.1"),
  elf("linux-arm64-musl", "arm64", "/lib/ld-musl-aarch64.so.1"),
  // Without a signature that fits, the system ends it at once.
  { name: "darwin-x64", bun: "bun-darwin-x64", format: "mach-o", machine: "x64", signature: "ad-hoc" },
  { name: "darwin-arm64", bun: "bun-darwin-arm64", format: "mach-o", machine: "arm64", signature: "ad-hoc" },
  { name: "windows-x64", bun: "bun-windows-x64", format: "pe", machine: "x64" },
];

function elf(name: string, machine: Anatomy["machine"], loader: string): Target {
  return { name, bun: `bun-${name}`, format: "elf", machine, loader };
}

const ending = ({ format }: Target) => (format === "pe" ? ".exe" : "");

export const fileName = (target: Target): string => `dragoman-${version}-${target.name}${ending(target)}`;

/** npm's words for each format's system. */
const systems = { elf: "linux", "mach-o": "darwin", pe: "win32" } as const;

interface PlatformPackage {
  name: string;
  /** The executable in it. */
  file: string;
  os: NodeJS.Platform;
  cpu: Target["machine"];
  /** On Linux. npm wants it named for both: https://docs.npmjs.com/cli/v11/configuring-npm/package-json#libc */
  libc?: "glibc" | "musl";
}

/** The package of npm's that holds the executable: an optional dependency of `dragoman`, installed on such a machine alone. */
export const packageFor = ({ name, format, machine, loader }: Target): PlatformPackage => ({
  name: `@dragoman/${name}`,
  file: format === "pe" ? "dragoman.exe" : "dragoman",
  os: systems[format],
  cpu: machine,
  ...(loader && { libc: loader.includes("musl") ? "musl" : "glibc" }),
});

/** That of this machine. @throws Error where there is none for it */
export function targetHere(): Target {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  const libcHere = header.glibcVersionRuntime ? "glibc" : "musl";
  const found = targets.find((target) => {
    const { os, cpu, libc } = packageFor(target);
    return os === process.platform && cpu === process.arch && (!libc || libc === libcHere);
  });
  if (!found) throw new Error(`There is no executable for ${process.platform} on ${process.arch}.`);
  return found;
}

/** The program, and the worker threads that it starts. */
export const entries = [
  "src/main.ts",
  "src/proxy/tokens/tokenizer-worker.ts",
  "src/books/history/reader-worker.ts",
  "src/proxy/server-tools/match-worker.ts",
];

/** Names under which our own files stand in every executable. */
export const embedded = [
  "root/dragoman",
  "root/tokenizer-worker.js",
  "root/reader-worker.js",
  "root/match-worker.js",
  "root/static/admin.css",
  `"${version}"`,
];
