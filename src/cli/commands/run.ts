/** The commands that run the server. */

import { type LogFormat, logFormats } from "../../lib/logger";
import type { AdminAuth } from "../../parts/app";
import { type Basis, beside, command, flag, parsed, text } from "../command";
import type { StartOptions } from "../start/start";
import { UsageError } from "../usage-error";
import { json, numberFrom, portFrom, signInOptions, signInWith, yes } from "./options";

const drain = numberFrom("--drain", [0, 86_400], "a whole number of seconds");

/** The options of `start` that a service may have too. */
const serverOptions = {
  port: parsed("<number>", "Port to listen on; 0 picks a free one", portFrom, { usual: "4141" }),
  host: text("<address>", "Address to listen on", { usual: "127.0.0.1" }),
  demo: flag("Serve scripted answers: no account, no network, no charge"),
  team: beside(["demo"], flag("a made-up team, with members, budgets and an invitation to accept")),
  ...signInOptions,
  allowOpen: flag("Allow other machines to connect even though no client key is configured"),
  adminAuth: parsed("<when>", "always: require ADMIN_TOKEN for the admin API on this machine too", adminAuthFrom, {
    values: () => ["always"],
  }),
  trustProxy: parsed(
    "<ranges>",
    "Reverse proxies, such as 10.0.0.0/8, that name the client's address in x-forwarded-for",
    rangesFrom,
  ),
  drain: parsed(
    "<seconds>",
    "How long running requests may finish after a signal, while health checks are answered",
    (given) => (given === undefined ? undefined : drain(given) * 1000),
  ),
  logFormat: parsed(
    "<format>",
    "text or json: one JSON object per line, with every field of a request's row",
    logFormatFrom,
    { values: () => logFormats },
  ),
  noUpdateNotice: flag("Do not check once a day for a newer version"),
};

/** These tie the server to a terminal or a parent, or would store a token. */
const attachedOptions = {
  json: flag("When ready, print one line of JSON on stdout, and nothing else there"),
  githubToken: text("<token>", "Use this GitHub token for this run only; - reads it from the first line of stdin"),
  idpToken: text("<token>", "The same as --github-token"),
  stdinLifetime: flag("Stop when stdin closes, for example because the parent program ended"),
  parentPid: parsed("<pid>", "Stop when this process ends", processFrom),
  logFile: text("<path>", "Write the log to this file instead of stderr; rotated at 10 MB"),
};

const detached = { json: false, stdinLifetime: false };

type Flags = Basis & { [Name in keyof typeof serverOptions]: ReturnType<(typeof serverOptions)[Name]["read"]> };

/** @throws UsageError */
function startOptions(given: Flags & { token?: string | undefined }): Omit<StartOptions, keyof typeof detached> {
  if (given.demo && (given.token ?? given.oauthApp ?? given.enterpriseUrl) !== undefined)
    throw new UsageError("The demo has accounts of its own: --demo takes no token, app or enterprise of GitHub.");
  return { ...given, environment: given.environment, drainMs: given.drain, ...signInWith(given) };
}

const start = command({
  name: "start",
  about: "Start the server",
  options: { ...serverOptions, ...attachedOptions },
  async run(given) {
    const { idpToken, githubToken } = given;
    if (idpToken !== undefined && githubToken !== undefined)
      throw new UsageError("--idp-token is another name of --github-token: give one of them.");
    const token = idpToken ?? githubToken;
    return (await import("../start/start")).start({ ...given, token, ...startOptions({ ...given, token }) });
  },
});

const ownOptions = new Set(["--yes", "-y", "--print"]);

const linesFrom = numberFrom("--lines", [1, 100_000]);
const logOptions = {
  lines: parsed("<number>", "How many lines", (given = "100") => linesFrom(given), { short: "n", usual: "100" }),
  follow: flag("Wait for further lines", "f"),
};

const serviceCommands = [
  command({
    name: "service install",
    about: "Run dragoman in the background: start it now, at every log in, and after a crash",
    brief: "Run it in the background",
    options: { yes, print: flag("Show the service's files, and do nothing else"), ...serverOptions },
    async run(given) {
      const { port, drainMs } = startOptions(given);
      if (port === 0) throw new UsageError("A service needs a port of its own: --port must not be 0.");
      const startArguments = given.words.filter((word) => !ownOptions.has(word));
      return (await import("../service/service")).serviceInstall({ ...given, drainMs, startArguments });
    },
  }),
  command({
    name: "service uninstall",
    about: "Stop the service and remove it; config, accounts and history stay",
    options: { yes },
    run: async (given) => (await import("../service/service")).serviceUninstall(given),
  }),
  command({
    name: "service status",
    about: "Show whether the service is installed, running and ready",
    options: { json: json() },
    run: async (given) => (await import("../service/service")).serviceStatus(given),
  }),
  command({
    name: "service logs",
    about: "Show the log of the service",
    options: logOptions,
    run: async (given) => (await import("../service/service")).serviceLogs(given),
  }),
];

const shown = [
  command({
    name: "status",
    about: "Show the server, the accounts, today's use and the connected tools",
    options: { json: json() },
    brief: "What runs, and what is left",
    run: async (given) => (await import("../status")).status(given),
  }),
  command({
    name: "open",
    about: "Open the admin pages of the running server in the browser",
    brief: "The admin pages, in the browser",
    run: async (given) => (await import("../open")).openPages(given),
  }),
  command({
    name: "logs",
    about: "Show the log of the service",
    options: logOptions,
    run: async (given) => (await import("../service/service")).serviceLogs(given),
  }),
];

export const runCommands = { title: "Run", commands: [start, ...shown, ...serviceCommands] };

/** Addresses and ranges. */
function rangesFrom(given: string | undefined): string[] {
  const ranges = given?.split(/[\s,]+/).filter(Boolean) ?? [];
  if (given !== undefined && ranges.length === 0)
    throw new UsageError("--trust-proxy names no address; give it some, such as 10.0.0.0/8, or leave it out.");
  return ranges;
}

function adminAuthFrom(given: string | undefined): AdminAuth {
  if (given === undefined || given === "always") return given ?? "remote";
  throw new UsageError("--admin-auth must be: always.");
}

function logFormatFrom(given = "text"): LogFormat {
  const format = logFormats.find((name) => name === given);
  if (format) return format;
  throw new UsageError(`--log-format must be one of: ${logFormats.join(", ")}.`);
}

function processFrom(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const pid = /^\d{1,10}$/.test(given) ? Number(given) : 0;
  if (pid === process.pid)
    throw new UsageError("--parent-pid is dragoman's own process ID; it must be the ID of another process.");
  if (pid > 0 && pid < 2 ** 31) return pid;
  throw new UsageError("--parent-pid must be a process ID.");
}
