/** `dragoman start`: options → parts → listening → a ready line → until a signal says stop. */
import { join } from "node:path";
import type { SignInApp } from "../accounts/hosts";
import { openRegistry } from "../accounts/registry";
import { type AdminAuth, type App, openApp } from "../app";
import type { Environment } from "../config/environment";
import { ProxyError } from "../errors";
import { isLoopbackAddress } from "../net/guard";
import { type Listening, listen } from "../server";
import { startDemo } from "../upstream/demo/demo";
import { announceRunning } from "./running";
import { offerSignIn } from "./sign-in";
import { atTerminal } from "./terminal";
import { UsageError } from "./usage-error";
import { welcome } from "./welcome";

export interface StartOptions {
  version: string;
  environment: Environment;
  /** 0 picks a free one. */
  port: number;
  host?: string;
  /** Stdout carries one line of JSON, and people read stderr. */
  json: boolean;
  demo: boolean;
  /** Others may reach us although no client key guards us. */
  allowOpen: boolean;
  adminAuth: AdminAuth;
  /** A GitHub token for this run; `-` says that it comes on stdin. */
  token?: string;
  enterpriseHost?: string;
  /** Whose sign-in is offered where there is no account yet. */
  app: SignInApp;
}

/** Milliseconds that running exchanges get when we are asked to stop. */
const grace = 30_000;

/** Settles when the server has stopped, with the exit code. @throws ProxyError */
export async function start(options: StartOptions): Promise<number> {
  const host = addressFor(options.host);
  if (options.adminAuth === "always" && options.environment.adminToken === undefined)
    throw new UsageError("--admin-auth=always needs a token to ask for: set ADMIN_TOKEN.");
  const demo = options.demo ? startDemo({ keep: 200 }) : undefined;
  const app = openApp({
    environment: demo ? besideTheReal(options.environment) : options.environment,
    version: options.version,
    temporaryToken: demo ? undefined : await tokenFor(options),
    enterpriseHost: options.enterpriseHost,
    demo,
    adminAuth: options.adminAuth,
  });
  let leave = () => {};
  try {
    if (!isLoopbackAddress(host) && app.clientKeys.length === 0 && !options.allowOpen) throw openToOthers(host);
    const signals = signalQueue();
    const listening = listenOrExplain(app, options.port, host);
    leave = announceRunning(app.environment.home, listening.url);
    announce(app, listening, options);
    if (!options.json && !demo && app.accounts.length === 0 && atTerminal())
      void offerSignIn({ ...options, registry: openRegistry(app.environment.accountsFolder, app.logger) });
    return await untilStopped(app, listening, signals);
  } finally {
    leave();
    app.close();
    await demo?.stop();
  }
}

/** The demo keeps its books in a folder of its own: they must not mix with the real ones. */
function besideTheReal(environment: Environment): Environment {
  const home = join(environment.home, "demo");
  return {
    ...environment,
    home,
    configFile: join(home, "config.json"),
    accountsFolder: join(home, "accounts"),
    historyFile: join(home, "admin.sqlite"),
  };
}

async function tokenFor({ token, environment }: StartOptions): Promise<string | undefined> {
  if (token === undefined) return environment.githubToken;
  const given = token === "-" ? (await Bun.stdin.text()).trim() : token;
  if (/^[!-~]+$/.test(given)) return given;
  throw new UsageError("--idp-token must be a GitHub token: printable characters without spaces.");
}

/** The spellings of "every address" are one; anything else must be an address or a name. */
function addressFor(host: string | undefined): string {
  if (host === undefined || host === "localhost") return "127.0.0.1";
  if (/^(?:0|0x0|0\.0\.0\.0)$/i.test(host)) return "0.0.0.0";
  if (/^\[?(?:::|::0|0:0:0:0:0:0:0:0)\]?$/.test(host)) return "::";
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  const numeric = /^[\d.]+$/.test(bare);
  if (numeric ? isIPv4(bare) : /^(?:[0-9a-f:]*:[0-9a-f:.]*|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)$/i.test(bare)) return bare;
  throw new UsageError("--host must be an address of this machine, such as 127.0.0.1 or 0.0.0.0.");
}

const isIPv4 = (text: string) => /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(text);

function openToOthers(host: string): UsageError {
  return new UsageError(
    `Listening on ${host} lets other machines spend your quota, and no client key is configured. Either put a key into "auth": {"apiKeys": ["…"]} in config.json, or say --allow-open.`,
  );
}

function listenOrExplain(app: App, port: number, host: string): Listening {
  try {
    return listen(app, port, host);
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
    if (code === "EADDRINUSE")
      throw new ProxyError(
        "internal",
        `Port ${port} is taken${holderOf(port)}. Stop that program, or choose another port with --port (0 picks a free one).`,
      );
    if (code === "EACCES")
      throw new ProxyError(
        "internal",
        `Port ${port} may not be used by this account; choose one above 1023 with --port.`,
      );
    throw new UsageError(`Cannot listen on ${host}: it is no address of this machine.`);
  }
}

/** The process that listens on the port, where the system tells. */
function holderOf(port: number): string {
  if (process.platform !== "linux") return "";
  const { stdout, success } = Bun.spawnSync(["ss", "-Hltnp", `sport = :${port}`], { stderr: "ignore" });
  const holder = success ? /\("([^"]+)",pid=(\d+)/.exec(stdout.toString()) : null;
  return holder ? ` by ${holder[1]} (process ${holder[2]})` : "";
}

function announce(app: App, listening: Listening, { json }: StartOptions): void {
  if (listening.warning) app.logger.warn(listening.warning);
  for (const line of welcome(app, listening.url)) process.stderr.write(`${line}\n`);
  if (!json) return;
  const { url, port } = listening;
  process.stdout.write(`${JSON.stringify({ event: "ready", url, port, pid: process.pid, version: app.version })}\n`);
}

/** The first signal lets running exchanges end, the second does not. */
async function untilStopped(app: App, listening: Listening, signals: Signals): Promise<number> {
  // Whoever read our lines may be gone: that is no reason to stop.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  const unforeseen = failureCount(app, () => process.exit(1));
  process.on("unhandledRejection", unforeseen);
  process.on("uncaughtException", unforeseen);

  const first = await signals.next();
  app.logger.info(`${first}: running exchanges have ${grace / 1000} s to end; a second signal ends them now.`);
  const second = signals.next();
  const drained = listening.drain();
  const outcome = await Promise.race([
    drained.then(() => "drained" as const),
    Bun.sleep(grace).then(() => "late" as const),
    second.then(() => "urged" as const),
  ]);
  app.close();
  if (outcome === "drained") return 0;
  // The last words of each stream are on their way.
  await Promise.race([drained, Bun.sleep(outcome === "late" ? 1000 : 100)]);
  listening.close();
  return outcome === "late" ? 0 : 130;
}

const mostFailures = 10;

/** What fails with nobody waiting for it is said and survived; more than ten times a minute, a fresh start is safer. */
export function failureCount(app: Pick<App, "logger" | "close">, giveUp: () => void): (reason: unknown) => void {
  const moments: number[] = [];
  return (reason) => {
    app.logger.error("Something failed that nobody waited for.", reason);
    moments.push(performance.now());
    if (moments.length <= mostFailures) return;
    if (performance.now() - moments.shift()! > 60_000) return;
    app.logger.error(`That was over ${mostFailures} times in a minute: dragoman stops, to be started anew.`);
    app.close();
    giveUp();
  };
}

type Signals = ReturnType<typeof signalQueue>;

function signalQueue() {
  const arrived: string[] = [];
  let waiting: ((signal: string) => void) | undefined;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => {
      if (waiting) waiting(signal);
      else arrived.push(signal);
      waiting = undefined;
    });
  return {
    next: () =>
      new Promise<string>((resolve) => {
        const early = arrived.shift();
        if (early) resolve(early);
        else waiting = resolve;
      }),
  };
}
