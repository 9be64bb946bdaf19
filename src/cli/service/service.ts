/** Runs dragoman always, under the service manager of this system. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { type Environment, homeFolder } from "../../config/environment";
import { ensurePrivateFolder, replaceFile } from "../../config/files";
import { asProxyError, ProxyError } from "../../lib/errors";
import { installationOf } from "../installation";
import type { ListOptions } from "../list-command";
import { type Readiness, readinessOf, waitUntilReady } from "../readiness";
import { findServer } from "../running-server";
import { findInstance } from "../start/instance-file";
import { describePortOwner, portOwnerOf } from "../start/port-owner";
import { agreedTo, interrupted, print, printJson, say, shortened } from "../terminal";
import { UsageError } from "../usage-error";
import { type ServiceDefinition, type ServiceFile, serviceLogFile, serviceVariables } from "./definition";
import { followFile, lastLines } from "./log-lines";
import {
  allPaths,
  isInstalled,
  type ManagerCommand,
  managerFor,
  type ServiceManager,
  type ServicePlaces,
} from "./managers";

interface ServiceInstallOptions {
  environment: Environment;
  port: number;
  demo: boolean;
  /** Milliseconds that running requests get after a signal. */
  drainMs: number | undefined;
  /** The options of `start`, as they were typed. */
  startArguments: readonly string[];
  /** Do not ask. */
  yes: boolean;
  /** Show the files, and do nothing else. */
  print: boolean;
}

/** Milliseconds from the start of the service until it must answer. */
const readyMs = 20_000;
/** For one question to the manager. A stop has no limit here: it takes as long as running answers get. */
const questionMs = 30_000;

/** @throws ProxyError, UsageError */
export async function serviceInstall(options: ServiceInstallOptions): Promise<number> {
  const { environment, port, yes } = options;
  const manager = requireManager();
  const service = definitionFor(options, manager);
  const before = isInstalled(manager, service);
  const files = manager.files(service, (command) => runCommand(command).success);
  showFiles(files, service, manager);
  if (options.print) return 0;
  requireTrial(manager);
  if (!before) requireFreePort(port, environment);
  if (!yes && !(await agreed("Write this and start the service?"))) return notChanged();
  ensurePrivateFolder(environment.home, (sentence) => say(sentence));
  putInPlace(manager, service, files, before);
  const ready = await waitUntilReady(environment, { demo: options.demo, timeoutMs: readyMs });
  if (!ready) return notReady(manager);
  say(`dragoman ${ready.version} runs as a service and is ready at ${ready.url}.`);
  say(manager.note);
  say("", "`dragoman service status` shows its state, `dragoman service logs` its log.");
  return 0;
}

/** Writes the files and starts the service; what stood there before stands there again if one of these fails. */
function putInPlace(manager: ServiceManager, service: ServiceDefinition, files: ServiceFile[], before: boolean): void {
  const former = manager
    .paths(service)
    .map((path) => ({ path, content: existsSync(path) ? readFileSync(path) : undefined }));
  try {
    for (const { path, content } of files) {
      mkdirSync(dirname(path), { recursive: true });
      replaceFile(path, content, 0o600);
    }
    // A file of variables that it no longer gets may hold secrets.
    for (const { path } of former) if (!files.some((file) => file.path === path)) remove(path, service);
    runAll(manager.install(service));
  } catch (thrown) {
    if (!before) runAll(optional(manager.uninstall(service)));
    for (const { path, content } of former)
      if (content) replaceFile(path, content, 0o600);
      else remove(path, service);
    runAll(optional(before ? manager.install(service) : manager.afterwards));
    const { kind, message } = asProxyError(thrown);
    const end = before ? "The service is what it was before." : "No service was installed.";
    throw new ProxyError(kind, `${message} ${end}`, { cause: thrown });
  }
}

const optional = (commands: ManagerCommand[]) => commands.map((each) => ({ ...each, mayFail: true, patienceMs: 0 }));

function definitionFor(
  { environment, startArguments, drainMs = 30_000 }: ServiceInstallOptions,
  manager: ServiceManager,
) {
  const { kind, command } = installationOf();
  if (kind === "bunx" || kind === "npx")
    throw new UsageError(
      `This copy was downloaded by ${kind} and may be removed at any time. Install dragoman first, for example with \`${kind === "npx" ? "npm install" : "bun add"} -g dragoman\`.`,
    );
  if (kind === "container")
    throw new UsageError("In a container the container runs always, not a service: set its restart policy instead.");
  const { home } = environment;
  const log = manager.logs ? [] : ["--log-file", serviceLogFile(home)];
  const service: ServiceDefinition = {
    command: [...command, "start", ...startArguments, ...log],
    variables: serviceVariables(process.env, environment),
    stopSeconds: drainMs / 1000 + 10,
    home,
    personHome: homeFolder(),
  };
  const bad = [...service.command, ...Object.values(service.variables)].find((text) => /\p{Cc}/u.test(text));
  if (bad !== undefined) throw new UsageError("A path, option or variable contains a control character.");
  return service;
}

function showFiles(files: ServiceFile[], service: ServiceDefinition, manager: ServiceManager): void {
  // Indented, a line of a file stays whole.
  const linesOf = (text: string) => text.trimEnd().split("\n");
  for (const { path, shown } of files)
    say(`${shortened(path)}:`, "", ...linesOf(shown).map((line) => (line === "" ? "" : `  ${line}`)), "");
  say(`It runs under ${manager.name}, with your rights, and uses the data folder ${shortened(service.home)}.`);
  if (process.env.DRAGOMAN_GITHUB_TOKEN?.trim())
    say("DRAGOMAN_GITHUB_TOKEN is not saved; sign in with `dragoman auth` instead.");
  if (process.env.DRAGOMAN_APP_KEY?.trim())
    say("The GitHub App of DRAGOMAN_APP_ID is not saved; sign it in with `dragoman auth add --app` instead.");
  if (process.env.DRAGOMAN_BILLING_TOKEN?.trim())
    say("DRAGOMAN_BILLING_TOKEN is not saved; `dragoman usage reconcile` takes one each time.");
}

function requireFreePort(port: number, environment: Environment): void {
  const running = findInstance(environment.home);
  if (running)
    throw new ProxyError(
      "internal",
      `A dragoman server already runs at ${running.url} (process ${running.pid}). Stop it first; the service takes its place.`,
    );
  const owner = portOwnerOf(port);
  if (owner)
    throw new ProxyError(
      "internal",
      `Port ${port} is in use by ${describePortOwner(owner)}. Stop that program, or choose another port with --port.`,
    );
}

function notReady(manager: ServiceManager): number {
  say(
    `The service was started, but is not ready after ${readyMs / 1000} s. \`dragoman service logs\` says why; \`dragoman service uninstall\` removes it.`,
  );
  if (!runCommand(manager.running).success) say(`${manager.name} reports that it does not run.`);
  return 1;
}

/** The files of an installed service; none if none is installed. */
export function serviceFiles(environment: Environment): string[] {
  const manager = managerFor(process.platform);
  const places = placesOf(environment);
  return manager && isInstalled(manager, places) ? allPaths(manager, places).filter((path) => existsSync(path)) : [];
}

/** Stops the service and removes its files. The data folder stays. */
export async function serviceUninstall({ environment, yes }: { environment: Environment; yes: boolean }) {
  const manager = requireManager();
  const places = placesOf(environment);
  const present = allPaths(manager, places).filter((path) => existsSync(path));
  if (!isInstalled(manager, places)) {
    say("No service is installed.");
    return 0;
  }
  say("This stops the service and removes:", ...present.map((path) => `  ${shortened(path)}`));
  if (!yes && !(await agreed("Remove the service?"))) return notChanged();
  runAll(manager.uninstall(places));
  // The log may have got its second file in between.
  for (const path of allPaths(manager, places)) remove(path, places);
  runAll(manager.afterwards);
  say(`The service is removed. Config, accounts and history stay in ${shortened(environment.home)}.`);
  return 0;
}

/** Removes a file, and the folders above it that are empty now, up to the home and data folders. */
function remove(path: string, { home, personHome }: ServicePlaces): void {
  rmSync(path, { force: true });
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if ([home, personHome, dirname(folder)].includes(folder)) return;
    if (!existsSync(folder) || readdirSync(folder).length > 0) return;
    rmdirSync(folder);
  }
}

/** @returns The exit code: 0 only if the service is installed, runs and is ready. */
export async function serviceStatus({ environment, json }: ListOptions): Promise<number> {
  const manager = requireManager();
  const places = placesOf(environment);
  const [file] = manager.paths(places);
  const installed = isInstalled(manager, places);
  const running = installed && runCommand(manager.running).success;
  const ready = running ? await readinessOf(environment) : undefined;
  if (json)
    printJson({ installed, running, ready: ready?.ready ?? false, url: ready?.url ?? null, manager: manager.name });
  else print(...statusLines({ manager, file: file!, installed, running, ready }));
  return installed && running && ready?.ready ? 0 : 1;
}

interface Status {
  manager: ServiceManager;
  file: string;
  installed: boolean;
  running: boolean;
  ready: Readiness | undefined;
}

function statusLines({ manager, file, installed, running, ready }: Status): string[] {
  if (!installed) return ["No service is installed. `dragoman service install` installs one."];
  return [
    `Installed  ${shortened(file)} (${manager.name})`,
    `Running    ${running ? "yes" : "no; `dragoman service logs` may say why"}`,
    ...(running
      ? [`Ready      ${ready ? (ready.ready ? `yes, at ${ready.url}` : `no: ${ready.reason}`) : "not yet"}`]
      : []),
  ];
}

interface ServiceLogsOptions {
  environment: Environment;
  lines: number;
  follow: boolean;
}

export async function serviceLogs({ environment, lines, follow }: ServiceLogsOptions): Promise<number> {
  const manager = requireManager();
  const places = placesOf(environment);
  if (!isInstalled(manager, places)) {
    const running = findServer(environment);
    say(
      running
        ? `No service is installed; the ${running.demo ? "demo" : "server"} at ${running.url} writes its log to the terminal it was started in, or to its --log-file.`
        : "No service is installed. `dragoman service install` installs one.",
    );
    return 1;
  }
  if (manager.logs) {
    const signal = interrupted();
    const child = Bun.spawn([...manager.logs(lines, follow)], { stdio: ["ignore", "inherit", "inherit"] });
    signal.addEventListener("abort", () => child.kill());
    const code = await child.exited;
    return signal.aborted ? 0 : code;
  }
  const path = serviceLogFile(environment.home);
  print(...lastLines(path, lines));
  if (follow) await followFile(path, (text) => process.stdout.write(text), interrupted());
  return 0;
}

/** The command that starts an installed service again; undefined if none is installed. */
export function restartCommand(environment: Environment): string | undefined {
  const manager = managerFor(process.platform);
  return manager && isInstalled(manager, placesOf(environment)) ? manager.restart.join(" ") : undefined;
}

const placesOf = ({ home }: Environment): ServicePlaces => ({ home, personHome: homeFolder() });

function requireManager(): ServiceManager {
  const manager = managerFor(process.platform);
  if (manager) return manager;
  throw new UsageError(
    `There is no known service manager for ${process.platform}. Run \`dragoman start\` under your own.`,
  );
}

function requireTrial(manager: ServiceManager): void {
  const { success, output } = runCommand(manager.trial);
  if (success) return;
  throw new ProxyError("internal", `${manager.name} does not answer${output && `: ${output}`}. ${manager.trialAdvice}`);
}

const agreed = (question: string) => agreedTo(question, true, ", or --print to look");

function notChanged(): number {
  say("Nothing was changed.");
  return 1;
}

/** @throws ProxyError with what the manager printed */
function runAll(commands: ManagerCommand[]): void {
  for (const { command, mayFail, patienceMs = 0 } of commands) {
    const deadline = performance.now() + patienceMs;
    let result = runCommand(command, { patient: true });
    while (!result.success && performance.now() < deadline) {
      Bun.sleepSync(500);
      result = runCommand(command, { patient: true });
    }
    if (!result.success && !mayFail)
      throw new ProxyError("internal", `\`${command.join(" ")}\` failed${result.output && `: ${result.output}`}.`);
  }
}

function runCommand(command: readonly string[], { patient = false } = {}): { success: boolean; output: string } {
  try {
    const { success, stderr } = Bun.spawnSync([...command], {
      stdio: ["ignore", "ignore", "pipe"],
      env: process.env,
      timeout: patient ? undefined : questionMs,
    });
    return { success, output: stderr.toString().replace(/\s+/g, " ").trim().replace(/\.$/, "").slice(0, 300) };
  } catch (thrown) {
    return { success: false, output: asProxyError(thrown).message };
  }
}
