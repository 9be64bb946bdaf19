/** How this copy of dragoman was installed, and the command that starts it again. */
import { existsSync, realpathSync } from "node:fs";
import { delimiter, join, relative, sep } from "node:path";
import { homeFolder } from "../config/environment";

/**
 * `npm`, `pnpm` and `bun`: installed for all folders. `project`: a package of a project. `bunx` and `npx`: a copy that is
 * only kept for a while. `source`: a clone of the repository.
 */
export type InstallationKind =
  | "executable"
  | "container"
  | "npm"
  | "pnpm"
  | "bun"
  | "project"
  | "bunx"
  | "npx"
  | "source";

export interface Installation {
  kind: InstallationKind;
  /** The program and its first arguments; the name of a command follows. */
  command: [program: string, ...args: string[]];
}

interface Process {
  /** The executable that runs: our own, or Bun. */
  execPath: string;
  /** The options of Bun. */
  execArgv: readonly string[];
  /** Our script; inside an executable it is not used. */
  main: string;
  isExecutable: boolean;
  env: Readonly<Record<string, string | undefined>>;
  /** Undefined where the name must hold in every folder. */
  cwd: string | undefined;
}

/** The first pattern that fits the path decides; each package manager keeps its files in folders of known names. */
const places: [RegExp, InstallationKind][] = [
  [/[\\/]bunx-[^\\/]*[\\/]/, "bunx"],
  [/[\\/]_npx[\\/]/, "npx"],
  [/[\\/]install[\\/]global[\\/]node_modules[\\/]/, "bun"],
  [/[\\/]pnpm[\\/]global[\\/]/, "pnpm"],
  [/[\\/]node_modules[\\/]@?dragoman[\\/]/, "npm"],
];

const thisProcess = (): Process => ({
  execPath: process.execPath,
  execArgv: process.execArgv,
  main: Bun.main,
  isExecutable: Bun.isStandaloneExecutable,
  env: process.env,
  cwd: process.cwd(),
});

export function installationOf(running: Process = thisProcess()): Installation {
  const { execPath, execArgv, main, isExecutable, env } = running;
  if (!isExecutable) return { kind: kindIn(main) ?? "source", command: [execPath, ...execArgv, main] };
  // The image sets it: a container's file system shows nothing of how it was made.
  const kind = env.DRAGOMAN_IMAGE ? "container" : (kindIn(realPath(execPath)) ?? "executable");
  return { kind, command: [stablePath(execPath, env.PATH)] };
}

function kindIn(path: string): InstallationKind | undefined {
  const kind = places.find(([folder]) => folder.test(path))?.[1];
  if (kind !== "npm") return kind;
  // A project says what it needs beside its packages; npm's own folder has no such file.
  return existsSync(join(projectOf(path), "package.json")) ? "project" : "npm";
}

/** The folder whose `node_modules` has this path. */
export const projectOf = (path: string): string => path.split(/[\\/]node_modules[\\/]/)[0]!;

/** What a person types for `dragoman` in another terminal in the same folder. */
export function typedName(running: Process = thisProcess()): string {
  const { execPath, main, isExecutable, env, cwd } = running;
  const { kind } = installationOf(running);
  if (isOnPath("dragoman", env) || kind === "container") return "dragoman";
  if (kind === "bun" || kind === "bunx") return "bunx dragoman";
  if (kind === "npm" || kind === "project" || kind === "npx") return "npx dragoman";
  if (isExecutable) return shortPath(execPath, cwd);
  return `${bunName(env)} ${shortPath(main, cwd)}`;
}

/** What a person types for `bun`, who may have none. */
export const bunName = (env: Process["env"] = process.env): string =>
  isOnPath("bun", env) ? "bun" : `npx --yes --allow-scripts=bun bun@${Bun.version}`;

/** Whether a person finds a program in another terminal: npx, bunx and `run` add folders to the PATH for themselves. */
function isOnPath(program: string, { PATH = "" }: Process["env"]): boolean {
  const folders = PATH.split(delimiter).filter((folder) => !/[\\/]node_modules[\\/]\.bin$/.test(folder));
  return Bun.which(program, { PATH: folders.join(delimiter) }) !== null;
}

/** The same in any folder. */
export const nameAnywhere = (): string => typedName({ ...thisProcess(), cwd: undefined });

/** The shortest path that a shell takes. */
function shortPath(path: string, cwd: string | undefined): string {
  const home = homeFolder();
  const below = cwd === undefined ? ".." : relative(cwd, path);
  const short = !below.startsWith("..")
    ? `.${sep}${below}`
    : path.startsWith(home + sep)
      ? `~${path.slice(home.length)}`
      : path;
  return short.includes(" ") ? `"${short.startsWith("~") ? path : short}"` : short;
}

/** The same for a file that another program reads, wherever it runs: `dragoman`, or words with their whole paths. */
export function writtenName(): string {
  if (typedName() === "dragoman") return "dragoman";
  return installationOf()
    .command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `"${word}"`))
    .join(" ");
}

/** The name on the PATH if it leads to this executable: a package manager's own path names the version. */
function stablePath(execPath: string, path: string | undefined): string {
  const named = Bun.which("dragoman", { PATH: path });
  return named !== null && realPath(named) === realPath(execPath) ? named : execPath;
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // it was replaced or removed since the start
  }
}
