/** `dragoman start`: options → parts → listening → a ready line → until a signal says stop, or nobody is left to serve. */

import { resolve } from "node:path";
import { z } from "zod";
import type { Stores } from "../../books/stores";
import { demoEnvironment, type Environment } from "../../config/environment";
import { asProxyError } from "../../lib/errors";
import { flushLines, type LogFormat, type Logger } from "../../lib/logger";
import { isLoopbackAddress } from "../../lib/net/address";
import type { AdminAuth, App } from "../../parts/app";
import { openApp } from "../../parts/open-app";
import { openStores } from "../../parts/open-stores";
import type { SignInApp } from "../../people/accounts/hosts";
import { temporaryAccount } from "../../people/accounts/temporary-account";
import type { ListenAddress, Listening } from "../../server";
import { buildStamp } from "../build-stamp";
import { nameAnywhere } from "../installation";
import { lookAt } from "../running-server";
import { atTerminal, printJson, say } from "../terminal";
import { UsageError } from "../usage-error";
import { awaken } from "./awaken";
import { bannerFacts, printBanner, type Started } from "./banner";
import type { Bill } from "./demo-fill";
import type { PricesOf } from "./demo-past";
import type { SimulatedAccounts } from "./demo-team";
import { exampleModel } from "./example-model";
import { findNeighbour, type Instance, writeInstanceFile } from "./instance-file";
import { bindingFor, listenOrExplain, nameOfBinding } from "./listen";
import { type ShutdownSignals, watchShutdown } from "./shutdown";
import { checkHeldOpen, readStdin, type Stdin } from "./stdin";
import { openTraces, type RunningTraces } from "./traces";

export interface StartOptions {
  version: string;
  environment: Environment;
  /** 0 picks a free one. */
  port: number;
  host?: string;
  /** Print one line of JSON on stdout; messages go to stderr. */
  json: boolean;
  demo: boolean;
  /** The demo is that of a team. */
  team: boolean;
  /** Allow other machines to connect although no client key is configured. */
  allowOpen: boolean;
  /** Stop when stdin ends. */
  stdinLifetime: boolean;
  /** Stop when this process ends. */
  parentPid?: number;
  /** Milliseconds that running requests get after a signal; health checks are answered meanwhile. */
  drainMs?: number;
  logFormat: LogFormat;
  adminAuth: AdminAuth;
  /** Addresses of reverse proxies, and ranges of them. */
  trustProxy: string[];
  /** A GitHub token for this run; `-` reads it from the first line of stdin. */
  token?: string;
  enterpriseHost?: string;
  /** Write what would go to stderr to this file. */
  logFile?: string;
  /** Do not look for a newer version. */
  noUpdateNotice: boolean;
  /** The app for the sign-in, if there is no account yet. */
  app: SignInApp;
}

/** Settles when the server has stopped, with the exit code. @throws ProxyError */
export async function start(options: StartOptions): Promise<number> {
  const { logFile } = options;
  if (logFile !== undefined) await import("./log-file").then(({ logToFile }) => logToFile(resolve(logFile)));
  const binding = await bindingFor(options.host);
  if (options.adminAuth === "always" && options.environment.adminToken === undefined)
    throw new UsageError("--admin-auth=always requires a token: set ADMIN_TOKEN.");
  if (options.stdinLifetime) checkHeldOpen();
  const stdin = options.stdinLifetime || options.token === "-" ? readStdin() : undefined;
  const temporary = temporaryAccount(options.environment, await tokenFor(options, stdin));
  if (!options.stdinLifetime) stdin?.letGo();
  const endings = watchShutdown({
    stdinEnded: options.stdinLifetime ? stdin?.ended : undefined,
    parentPid: options.parentPid,
    drainMs: options.drainMs,
  });
  const demo = options.demo ? await openDemo(options) : undefined;
  const environment = demo ? demoEnvironment(options.environment, options.team) : options.environment;
  const stores = await openStores(environment, { follow: true, logFormat: options.logFormat });
  const forTeam = demo && options.team ? await import("./demo-team") : undefined;
  const ofMembers = demo && (await forTeam?.makeTeam(stores, demo));
  const past = demo && (await import("./demo-fill"));
  const begun = Date.now();
  const madeUp = demo && past?.madeUpPast(begun, (model) => demo.pricesOf(model), ofMembers);
  if (madeUp) await past?.giveKeysAndBudgets(stores, environment, begun, madeUp);
  const app = openApp({
    environment,
    stores,
    version: options.version,
    command: nameAnywhere(),
    temporary: demo ? undefined : temporary,
    enterpriseHost: options.enterpriseHost,
    demo: demo && { url: demo.url, accounts: options.team ? undefined : demo.accounts },
    adminAuth: options.adminAuth,
    openTo: options.allowOpen ? "anyone" : isLoopbackAddress(binding.address) ? "this machine" : "nobody",
    trustedProxies: await trustedProxiesOf(options),
  });
  let leave = () => {};
  let traces: RunningTraces | undefined;
  try {
    if (app.requiresKey && !app.hasKeys) throw openToOthers(binding);
    traces = await openTraces(app);
    const listening = listenOrExplain(app, options, binding);
    // Requests that are already waiting come before files are written and accounts are loaded.
    await Bun.sleep(0);
    const neighbour = findNeighbour(app.environment.home, listening.url);
    const isTied = options.stdinLifetime || options.parentPid !== undefined;
    leave = writeInstanceFile(app.environment.home, { url: listening.url, isTied });
    const rows = madeUp && (await past?.givePast(app, madeUp));
    const invitation = app.members && (await forTeam?.inviteGuest(app.members));
    await announce({ app, listening, invitation, collector: traces?.collector }, options);
    const followed = demo && rows && past?.followPast(app, rows, (charge) => demo.charge(charge));
    if (neighbour) void nameNeighbour(app, neighbour);
    void Promise.resolve(followed).then(() => awaken(app));
    if (app.team) void import("./upkeep").then(({ keepAccountsKnown }) => keepAccountsKnown(app));
    void followUpdates(app, options);
    const mayAsk = !options.json && options.logFormat === "text" && logFile === undefined && !options.stdinLifetime;
    if (mayAsk && !demo && app.accounts.length === 0 && atTerminal()) void signInBeside(stores, options);
    return await untilStopped(app, listening, endings);
  } finally {
    leave();
    app.close();
    await traces?.close();
    await demo?.stop();
    await stores.close();
  }
}

/** @throws UsageError */
async function trustedProxiesOf({ trustProxy }: StartOptions) {
  if (trustProxy.length === 0) return undefined;
  const { openTrustedProxies } = await import("../../lib/net/in/trusted-proxies");
  try {
    return openTrustedProxies(trustProxy);
  } catch (thrown) {
    throw new UsageError(`--trust-proxy: ${asProxyError(thrown).message}`);
  }
}

const isChild = ({ json, stdinLifetime, parentPid }: StartOptions) => json || stdinLifetime || parentPid !== undefined;

interface RunningDemo extends SimulatedAccounts {
  url: string;
  pricesOf: PricesOf;
  charge: Bill;
  stop(): Promise<void>;
}

/** Loaded only for the demo: most starts do not need it. */
async function openDemo({ team }: StartOptions): Promise<RunningDemo> {
  const { openDemo } = await import("../../demo/demo");
  return openDemo(team ? (await import("./demo-team")).teamNames : undefined);
}

/** Only for a server that a person has started, of a build that knows where its releases are. */
async function followUpdates(app: App, options: StartOptions): Promise<void> {
  const { noUpdateNotice, demo } = options;
  if (buildStamp.repository === undefined) return;
  const { followReleases, mayLook } = await import("../update/notice");
  const { releaseSource } = await import("../update/releases");
  const source = releaseSource(app.environment);
  if (source && mayLook(process.env, { isChild: isChild(options), noNotice: noUpdateNotice, demo }))
    followReleases(app, source);
}

async function signInBeside({ accounts: store }: Stores, options: StartOptions): Promise<void> {
  const { offerSignIn } = await import("../sign-in");
  await offerSignIn({ ...options, store });
}

async function tokenFor({ token }: StartOptions, stdin?: Stdin): Promise<string | undefined> {
  if (token === undefined) return undefined;
  const given = token === "-" && stdin ? await stdin.firstLine : token;
  if (/^[!-~]+$/.test(given)) return given;
  throw new UsageError(
    given === ""
      ? "The GitHub token is empty: `--github-token -` reads it from the first line of stdin."
      : "The GitHub token has characters that no token has: it must be printable characters without spaces.",
  );
}

function openToOthers(binding: ListenAddress): UsageError {
  return new UsageError(
    `Listening on ${nameOfBinding(binding)} lets other machines spend your quota, and no client key is configured. Create one with \`dragoman key add NAME\`, or use --allow-open.`,
  );
}

/** Warns that two servers share a data folder. */
async function nameNeighbour({ logger, environment }: App, { url, pid }: Instance): Promise<void> {
  // The process id of a killed server may belong to another program by now.
  if (!(await lookAt(url, "/health", z.unknown()))) return;
  logger.warn(
    `The data folder ${environment.home} is also used by the dragoman server at ${url} (process ${pid}): they share config, accounts and history.`,
  );
}

async function announce(started: Started, { json, logFormat, environment }: StartOptions): Promise<void> {
  await started.app.members?.hearAll();
  const { app, listening } = started;
  if (app.demo && environment.databaseUrl !== undefined)
    app.logger.warn("The demo has a data folder of its own: DRAGOMAN_DATABASE_URL is not used.");
  if (listening.warning) app.logger.warn(listening.warning);
  // A program that waits for the line below has a log, in which only facts belong.
  if (logFormat === "text" && !json) say(...printBanner(started, await exampleModel(app)));
  else for (const fact of bannerFacts(started)) app.logger.info(fact);
  if (!json) return;
  // Whoever reads the line below has the facts in the log.
  flushLines();
  const { url, port } = listening;
  try {
    printJson({ event: "ready", url, port, pid: process.pid, version: app.version });
  } catch {
    // A full disk, or no stdout at all: the server is there all the same.
  }
}

/** Lets running requests finish within the grace period; a second signal ends them. */
async function untilStopped(app: App, listening: Listening, endings: ShutdownSignals): Promise<number> {
  const unforeseen = failureCount(app.logger, () => {
    app.close();
    process.exit(1);
  });
  process.on("unhandledRejection", unforeseen);
  process.on("uncaughtException", unforeseen);

  const { why, grace, noticeMs } = await endings.first;
  app.logger.info(
    `${why}: stopping. Running requests have ${grace / 1000} s to finish; a second signal stops them now.`,
  );
  const drained = listening.drain(noticeMs);
  const outcome = await Promise.race([drained.then(() => "drained" as const), endings.over]);
  const sending = outcome === "late" ? 500 : 100;
  // What has no answer yet gets an error too, and a row.
  if (outcome !== "drained") await listening.cut(sending);
  app.close();
  if (outcome === "drained") return 0;
  // The final events of the streams are being sent.
  await Promise.race([drained, Bun.sleep(sending)]);
  listening.close();
  return outcome === "late" ? 0 : 130;
}

const maxFailures = 10;

/** Logs errors outside of requests and keeps running. After more than ten in a minute, the process stops. */
export function failureCount(logger: Logger, giveUp: () => void): (reason: unknown) => void {
  const moments: number[] = [];
  return (reason) => {
    logger.error("An unexpected error occurred outside of a request.", reason);
    moments.push(performance.now());
    if (moments.length <= maxFailures) return;
    if (performance.now() - moments.shift()! > 60_000) return;
    logger.error(
      `More than ${maxFailures} unexpected errors occurred within a minute. dragoman stops; start it again.`,
    );
    giveUp();
  };
}
