/** How this copy of dragoman was installed, and the command that starts it again. */
import { realpathSync } from "node:fs";
import { delimiter, relative, sep } from "node:path";
import { homeFolder } from "../config/environment";

/** `source`: a clone of the repository. `bunx`: a copy that is only kept for a while. */
export const installationKinds = [
  "executable",
  "brew",
  "scoop",
  "winget",
  "container",
  "npm",
  "bun",
  "bunx",
  "source",
] as const;
export type InstallationKind = (typeof installationKinds)[number];

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
  [/[\\/]bunx-[^\\/]*[\\/]|[\\/]_npx[\\/]/, "bunx"],
  [/[\\/]\.bun[\\/]install[\\/]global[\\/]/, "bun"],
  [/[\\/]node_modules[\\/]@?dragoman[\\/]/, "npm"],
  [/[\\/]Cellar[\\/]/, "brew"],
  [/[\\/]WinGet[\\/]Packages[\\/]/i, "winget"],
  [/[\\/]scoop[\\/]apps[\\/]dragoman[\\/]/i, "scoop"],
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

const kindIn = (path: string) => places.find(([folder]) => folder.test(path))?.[1];

/** What a person types for `dragoman` in another terminal in the same folder. */
export function typedName(running: Process = thisProcess()): string {
  const { execPath, main, isExecutable, env, cwd } = running;
  // Whoever runs this by npx, bunx or `run` has folders on the PATH that another terminal has not.
  const path = (env.PATH ?? "").split(delimiter).filter((folder) => !/[\\/]node_modules[\\/]\.bin$/.test(folder));
  const find = (program: string) => Bun.which(program, { PATH: path.join(delimiter) });
  const { kind } = installationOf(running);
  if (find("dragoman") || kind === "container") return "dragoman";
  if (kind === "bun") return "bunx dragoman";
  if (kind === "npm") return "npx dragoman";
  if (kind === "bunx") return /[\\/]_npx[\\/]/.test(isExecutable ? execPath : main) ? "npx dragoman" : "bunx dragoman";
  if (isExecutable) return shortPath(execPath, cwd);
  return `${find("bun") ? "bun" : `npx --yes --allow-scripts=bun bun@${Bun.version}`} ${shortPath(main, cwd)}`;
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
