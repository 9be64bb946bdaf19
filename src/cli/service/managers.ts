/** The service manager of each system, in one table: its files and its commands. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type ServiceDefinition, type ServiceFile, serviceLogFile } from "./definition";
import { launchdFile, launchdLabel, launchdPath } from "./launchd";
import { namespaceTrial, systemdFiles, systemdPlaces, systemdUnit } from "./systemd";

type Words = readonly string[];
/** Where a service's files are. */
export type ServicePlaces = Pick<ServiceDefinition, "home" | "personHome">;

export interface ServiceManager {
  /** As its users call it. */
  name: string;
  /** Fails if the manager cannot be used. */
  trial: Words;
  /** What to do if it cannot. */
  trialAdvice: string;
  /** The files that it may be installed with, whether they exist or not; the definition comes first. */
  paths(places: ServicePlaces): string[];
  /** The files that it writes its log to, if its manager keeps none. */
  logFiles?(places: ServicePlaces): string[];
  /** Those of `paths` that it needs. @param run Whether a command succeeds. */
  files(service: ServiceDefinition, run: (command: Words) => boolean): ServiceFile[];
  /** Run in order after the files are written. The service may exist and run already. */
  install(places: ServicePlaces): ManagerCommand[];
  /** Run in order before the files are removed. */
  uninstall(places: ServicePlaces): ManagerCommand[];
  /** Run in order after them. */
  afterwards: ManagerCommand[];
  /** For a person: starts it again, with a new version of the program. */
  restart: Words;
  /** Succeeds while the service runs. */
  running: Words;
  /** Prints the log; undefined if the server writes it to a file. */
  logs?(lines: number, follow: boolean): Words;
  /** What the person should know, in sentences. */
  note: string;
}

export interface ManagerCommand {
  command: Words;
  /** It may fail, for example because there is nothing to stop. */
  mayFail?: boolean;
  /** Milliseconds to try it again: the manager may still be stopping the service. */
  patienceMs?: number;
}

const must = (...command: string[]): ManagerCommand => ({ command });
const may = (...command: string[]): ManagerCommand => ({ command, mayFail: true });

const systemd: ServiceManager = {
  name: "systemd",
  trial: ["systemctl", "--user", "show-environment"],
  trialAdvice:
    "A session of your user is needed: log in as this user (not with su or sudo), or run `loginctl enable-linger` for it as root.",
  paths(places) {
    const { units, variables } = systemdPlaces(places, process.env);
    return [join(units, systemdUnit), variables];
  },
  files: (service, run) => systemdFiles(service, systemdPlaces(service, process.env), run(namespaceTrial)),
  install: () => [
    must("systemctl", "--user", "daemon-reload"),
    may("systemctl", "--user", "reset-failed", systemdUnit),
    must("systemctl", "--user", "--quiet", "enable", systemdUnit),
    must("systemctl", "--user", "restart", systemdUnit),
  ],
  uninstall: () => [may("systemctl", "--user", "--quiet", "disable", "--now", systemdUnit)],
  afterwards: [must("systemctl", "--user", "daemon-reload"), may("systemctl", "--user", "reset-failed", systemdUnit)],
  restart: ["systemctl", "--user", "restart", systemdUnit],
  running: ["systemctl", "--user", "--quiet", "is-active", systemdUnit],
  logs: (lines, follow) => [
    ...["journalctl", "--user-unit", systemdUnit, "--lines", String(lines), "--output=cat"],
    ...(follow ? ["--follow"] : ["--no-pager"]),
  ],
  note: "It starts when you log in. To start it with the machine, run: loginctl enable-linger",
};

const domain = () => `gui/${process.getuid?.() ?? 0}`;
const agent = () => `${domain()}/${launchdLabel}`;

const launchd: ServiceManager = {
  name: "launchd",
  get trial() {
    return ["launchctl", "print", domain()];
  },
  trialAdvice: "An agent belongs to a session at the screen: log in there as this user.",
  paths: ({ personHome }) => [launchdPath(personHome)],
  // The log and the one before it.
  logFiles: ({ home }) => [serviceLogFile(home), `${serviceLogFile(home)}.1`],
  files: (service) => [launchdFile(service)],
  install: ({ personHome }) => [
    may("launchctl", "bootout", agent()),
    { command: ["launchctl", "bootstrap", domain(), launchdPath(personHome)], patienceMs: 45_000 },
  ],
  uninstall: () => [may("launchctl", "bootout", agent())],
  afterwards: [],
  get restart() {
    return ["launchctl", "kickstart", "-k", agent()];
  },
  get running() {
    return ["launchctl", "print", agent()];
  },
  note: "It starts when you log in.",
};

const managers: Partial<Record<NodeJS.Platform, ServiceManager>> = {
  linux: systemd,
  darwin: launchd,
};

export const managerFor = (platform: NodeJS.Platform): ServiceManager | undefined =>
  Object.hasOwn(managers, platform) ? managers[platform] : undefined;

/** All files that belong to the service, whether they exist or not. */
export const allPaths = (manager: ServiceManager, places: ServicePlaces): string[] => [
  ...manager.paths(places),
  ...(manager.logFiles?.(places) ?? []),
];

export const isInstalled = (manager: ServiceManager, places: ServicePlaces): boolean =>
  existsSync(manager.paths(places)[0]!);
