/** `dragoman uninstall`: takes dragoman off this machine, and says what it removes and what stays. */
import { existsSync, rmSync } from "node:fs";
import { type ClientId, clientIds, filesOf } from "../clients/index";
import { backupsIn } from "../clients/settings-file/backup";
import { requireUndoable } from "../clients/settings-file/undo";
import type { SettingsFile } from "../clients/settings-file/write";
import type { Environment } from "../config/environment";
import { removeDataFolder, requireOwnFolder } from "../config/files";
import { asProxyError, codeOf, ProxyError } from "../lib/errors";
import { writtenProjects } from "./connect/project";
import { person, placeOf } from "./connect/tools";
import { undoFiles } from "./connect/undo";
import { type Installation, type InstallationKind, installationOf } from "./installation";
import { forgetKept } from "./kept-keys";
import { table } from "./layout";
import { recordedIn } from "./running-server";
import { serviceFiles, serviceUninstall } from "./service/service";
import { agreedTo, say, shortened } from "./terminal";

interface UninstallOptions {
  environment: Environment;
  /** Do not ask. */
  yes: boolean;
  /** Remove the data folder too. */
  purge: boolean;
  /** By default: of this program. */
  installation?: Installation;
}

/** How to remove a copy that a package manager, or somebody else, keeps. */
const advice: Record<Exclude<InstallationKind, "executable">, string> = {
  container: "The program is in a container. Remove the container, and its volume for the data.",
  npm: "npm installed the program. Run: npm uninstall -g dragoman",
  pnpm: "pnpm installed the program. Run: pnpm remove -g dragoman",
  bun: "Bun installed the program. Run: bun remove -g dragoman",
  project: "A project has the program as a package. Run there, if npm is its package manager: npm uninstall dragoman",
  bunx: "The program is a temporary copy of bunx; nothing is installed.",
  npx: "The program is a temporary copy of npx; nothing is installed.",
  source: "The program runs from a clone of its repository. Delete that folder.",
};

/** @returns The exit code: 1 if something is left that should go. @throws ProxyError while a server of this folder runs */
export async function uninstall(options: UninstallOptions): Promise<number> {
  const { environment, yes, purge } = options;
  const { kind, command } = options.installation ?? installationOf();
  const program = kind === "executable" ? command[0] : undefined;
  const service = serviceFiles(environment);
  if (service.length === 0) requireStopped(environment);
  sayPlan({
    service,
    settings: backupsIn(environment.home).map(({ file }) => file),
    program,
    purge,
    home: environment.home,
  });
  if (!yes && !(await agreedTo("Uninstall dragoman?", false))) {
    say("Nothing was removed.");
    return 1;
  }
  const written = writtenFiles(environment);
  if (purge && existsSync(environment.home)) requireOwnFolder(environment.home);
  if (!(await each(written, ({ files }) => requireUndoable(files)))) {
    say("", "Nothing was removed. Undo these first, then run `dragoman uninstall` again.");
    return 1;
  }
  if (service.length > 0) {
    await serviceUninstall({ environment, yes: true });
    // Its own server has stopped: what runs now is another one.
    requireStopped(environment);
  }
  const isUndone = await each(written, async ({ id, files }) => {
    await undoFiles(files, false);
    if (id) forgetKept(environment, id);
  });
  if (!isUndone) {
    say("", "The rest stays until these are undone. Then run `dragoman uninstall` again.");
    return 1;
  }
  if (purge && existsSync(environment.home)) {
    removeDataFolder(environment.home);
    say(`${shortened(environment.home)} is removed.`);
  }
  say(program === undefined ? advice[kind as keyof typeof advice] : removeProgram(program));
  say("If your shell loads `dragoman completion` at its start, remove that line.");
  return 0;
}

interface Plan {
  service: readonly string[];
  settings: readonly string[];
  program: string | undefined;
  purge: boolean;
  home: string;
}

function sayPlan({ service, settings, program, purge, home }: Plan): void {
  const data = `${shortened(home)}: config, accounts with their tokens, history`;
  const removed = [
    ...service.map((path) => `the service, ${shortened(path)}`),
    ...settings.map((path) => `dragoman's settings in ${shortened(path)}`),
    ...(program === undefined ? [] : [`the program, ${shortened(program)}`]),
    ...(purge ? [data] : []),
  ];
  const kept = [
    ...(purge ? [] : [`${data} (--purge removes it too)`]),
    "the permission that you gave at GitHub, until you revoke it in GitHub's settings",
  ];
  if (removed.length > 0) say("This removes:", ...listed(removed));
  say("This stays:", ...listed(kept), "");
}

const listed = (entries: readonly string[]) =>
  table(
    entries.map((entry) => ["-", entry]),
    { heads: false, indent: 2 },
  );

/** @throws ProxyError: the server would go on with what is removed here */
function requireStopped(environment: Environment): void {
  const [running] = recordedIn(environment);
  if (running)
    throw new ProxyError(
      "conflict",
      `A dragoman server runs at ${running.url} (process ${running.pid}). Stop it first.`,
    );
}

interface WrittenFiles {
  /** The client; undefined for the settings of a project. */
  id?: ClientId;
  files: SettingsFile[];
}

/** The files that dragoman may have written, those of each client together. */
function writtenFiles(environment: Environment): WrittenFiles[] {
  const own = clientIds.map((id) => ({
    id,
    files: filesOf(id, [], person()).map((file) => placeOf(id, file, environment)),
  }));
  return [...own, ...writtenProjects(environment).map((file) => ({ files: [file] }))];
}

/** @returns False if it failed for some of them; each is named. */
async function each(all: readonly WrittenFiles[], work: (one: WrittenFiles) => Promise<void>): Promise<boolean> {
  let isDone = true;
  for (const one of all)
    try {
      await work(one);
    } catch (thrown) {
      say(asProxyError(thrown).message);
      isDone = false;
    }
  return isDone;
}

function removeProgram(path: string): string {
  if (process.platform === "win32") return `Windows cannot remove a program that runs. Delete ${path} yourself.`;
  try {
    rmSync(path);
  } catch (thrown) {
    return `The program could not be removed (${codeOf(thrown) || thrown}): delete ${path} yourself. The rest is done.`;
  }
  return `${shortened(path)} is removed.`;
}
