/** Says whether there is a newer release, and what to type to get it for the way this copy was installed. */
import { basename, dirname, join } from "node:path";
import { type Environment, homeFolder } from "../../config/environment";
import { ProxyError } from "../../lib/errors";
import { bunName, type Installation, type InstallationKind, installationOf, projectOf } from "../installation";
import { restartCommand } from "../service/service";
import { print, say, shortened, withProgress } from "../terminal";
import { latestRelease, type ReleaseSource, releaseSource } from "./releases";

interface UpdateOptions {
  version: string;
  environment: Environment;
  /** By default: of this program and this build. */
  installation?: Installation;
  source?: ReleaseSource;
}

/** What the commands depend on. */
export interface Place {
  /** The executable or the script that runs. */
  path: string;
  /** `https://github.com/owner/name` of a release's build; undefined for a build of one's own. */
  repository: string | undefined;
  /** The home folder of the person. */
  home: string;
  platform: NodeJS.Platform;
  /** How a person here types `bun`. */
  bun: string;
}

export interface Way {
  /** A sentence that ends with a colon. */
  how: string;
  /** One command a line. */
  commands: readonly string[];
  /** A server that runs from it goes on with the old version until it is restarted. */
  restarts: boolean;
}

/** @returns The exit code: 1 if the newest release is not known. @throws ProxyError if a service's files cannot be looked for */
export async function update({ version, environment, ...given }: UpdateOptions): Promise<number> {
  const { kind, command } = given.installation ?? installationOf();
  const source = given.source ?? releaseSource(environment);
  const newest = source && (await newestOf(source, version));
  if (newest !== undefined && Bun.semver.order(newest, version) <= 0) {
    print(`dragoman ${version} is the newest version.`);
    return 0;
  }
  if (newest !== undefined) print(`dragoman ${newest} is available; this is ${version}.`);
  const { platform } = process;
  const path = command.at(-1)!;
  const way = ways[kind]({ path, repository: source?.repository, home: homeFolder(), platform, bun: bunName() });
  print(way.how, ...way.commands.map((line) => `  ${line}`));
  if (way.restarts) print(...toRestart(restartCommand(environment)));
  return source !== undefined && newest === undefined ? 1 : 0;
}

/** Undefined, after it has said why, if it cannot be found out. */
async function newestOf(source: ReleaseSource, version: string): Promise<string | undefined> {
  try {
    return await withProgress("Looking for the newest release", () => latestRelease(source, version));
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    say(`Whether there is a newer version is not known: ${thrown.message}`);
    return undefined;
  }
}

const toRestart = (service: string | undefined): string[] =>
  service === undefined ? ["Then restart a running server."] : ["Then restart the service:", `  ${service}`];

/** For each way to install dragoman, how it gets the newest version. */
export const ways: Record<InstallationKind, (place: Place) => Way> = {
  executable: (place) => (place.repository === undefined ? ownBuild(place) : installScript(place, place.repository)),
  container: ({ repository }) =>
    repository === undefined
      ? {
          how: "It runs in a container. In a clone of its repository, this builds the new image and starts it with the same volume:",
          commands: ["git pull", "docker compose --file src/deploy/compose.yaml up --detach --build"],
          restarts: false,
        }
      : {
          how: "It runs in a container. Get the new image, and start a container of it with the same volume:",
          commands: [`docker pull ghcr.io${new URL(repository).pathname.toLowerCase()}:latest`],
          restarts: false,
        },
  npm: () => packaged("npm installed it", "npm install -g dragoman@latest"),
  pnpm: () => packaged("pnpm installed it", "pnpm add -g dragoman@latest"),
  bun: () => packaged("Bun installed it", "bun add -g dragoman@latest"),
  project: ({ path }) => ({
    how: `The project in ${shortened(projectOf(path))} has it as a package. Type there, if npm is its package manager:`,
    commands: ["npm install dragoman@latest"],
    restarts: true,
  }),
  bunx: () => temporary("bunx"),
  npx: () => temporary("npx"),
  source: ({ path, bun }) => ({
    // The script is src/main.ts.
    how: `It runs from a clone of its repository. Type in ${shortened(dirname(dirname(path)))}:`,
    commands: ["git pull", `${bun} install`],
    restarts: true,
  }),
};

const packaged = (who: string, command: string): Way => ({
  how: `${who}. Type:`,
  commands: [command],
  restarts: true,
});

const temporary = (program: string): Way => ({
  how: `${program} runs it from a temporary copy. This runs the newest version:`,
  commands: [`${program} dragoman@latest start`],
  restarts: false,
});

function ownBuild({ path, bun }: Place): Way {
  const isInPlace = basename(dirname(path)) === "dist";
  return {
    how: "It is a build of your own. Type in the clone of the repository that it was made from:",
    commands: [
      ...["git pull", `${bun} install`, `${bun} run build`],
      ...(isInPlace ? [] : [`mv ${join("dist", basename(path))} ${quoted(path)}`]),
    ],
    restarts: true,
  };
}

/** The script of the newest release writes `dragoman` into the folder that this executable is in. */
function installScript({ path, home, platform }: Place, repository: string): Way {
  const folder = dirname(path);
  const scripts = `${repository}/releases/latest/download`;
  const isWindows = platform === "win32";
  const made = join(folder, isWindows ? "dragoman.exe" : "dragoman");
  const how = `It is an executable. ${isWindows ? "Stop a running server first. " : ""}This puts the newest one at ${shortened(made)}:`;
  if (isWindows) {
    const inFolder = `$env:DRAGOMAN_INSTALL_DIR = '${folder.replaceAll("'", "''")}'`;
    return { how, commands: [inFolder, `irm ${scripts}/install.ps1 | iex`], restarts: true };
  }
  // Where the script puts it by itself.
  const inFolder = folder === join(home, ".local/bin") ? "" : `DRAGOMAN_INSTALL_DIR=${quoted(folder)} `;
  return { how, commands: [`curl -fsSL ${scripts}/install.sh | ${inFolder}sh`], restarts: true };
}

/** A path as one word for a POSIX shell. */
const quoted = (path: string): string => (/^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`);
