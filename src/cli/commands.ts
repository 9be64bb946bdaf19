/** The commands' names and options, read from the command line; each command's work is in its own file. */
import cac, { type CAC } from "cac";
import type { AdminAuth } from "../app";
import { ProxyError } from "../errors";
import { type LogFormat, logFormats, printable } from "../logger";
import { addBudgets } from "./budget-commands";
import type { ConnectFlags } from "./connect/connect";
import { addDatabase } from "./database/commands";
import { fileFrom, type Given, givenIn } from "./given";
import { addKeys } from "./key-commands";
import { addMembers } from "./members/commands";
import { addService } from "./service/commands";
import type { StartOptions } from "./start/start";
import { Interrupted, print, say } from "./terminal";
import { UsageError } from "./usage-error";

/** @returns The exit code. */
export async function runCommand(argv: string[], version: string): Promise<number> {
  const cli = commandLine(argv, version);
  const words = joined(argv, cli);
  try {
    cli.parse(["bun", "dragoman", ...words], { run: false });
    if (cli.options.help) return 0;
    if (cli.options.version) {
      print(version);
      return 0;
    }
    if (!cli.matchedCommand) {
      if (argv.length === 0) cli.outputHelp();
      else throw new UsageError(noCommand(argv[0]!, cli));
      return 0;
    }
    return (await cli.runMatchedCommand()) ?? 0;
  } catch (thrown) {
    if (!(thrown instanceof Error)) throw thrown;
    if (thrown instanceof UsageError) return complain(thrown.message, 2);
    if (thrown instanceof Interrupted) return complain(thrown.message, 130);
    if (thrown.name === "CACError") return complain(`${inWords(thrown.message, words, cli)}; ${helpFor(words)}`, 2);
    if (thrown instanceof ProxyError) return complain(thrown.message, 1);
    // A full disk or a folder that is not writable: a stack trace would not help.
    if ("syscall" in thrown && "path" in thrown) return complain(`The system refused this: ${thrown.message}.`, 1);
    throw thrown;
  }
}

/** cac's errors about arguments, as a person would say them. */
function inWords(message: string, [command = "", more]: string[], cli: CAC): string {
  const missing = /^missing required args for command `(.*?) <(.*?)>/.exec(message);
  if (missing) return `\`dragoman ${missing[1]}\` needs a ${missing[2]}`;
  if (!message.startsWith("Unused args")) return message;
  const meant = cli.commands.map(({ name }) => name).filter((name) => name.startsWith(`${command} `));
  return meant.length > 0
    ? `There is no command \`${command} ${more}\`; there are ${meant.map((name) => `\`${name}\``).join(", ")}`
    : `\`${command}\` takes no ${message.replace("Unused args: ", "")}`;
}

/** The first word may be that of several commands: `key` of `key add`. */
function noCommand(word: string, { commands }: CAC): string {
  const meant = commands.filter(({ name }) => name.startsWith(`${word} `)).map(({ name }) => `\`dragoman ${name}\``);
  const hint = meant.length > 0 ? `; there are ${meant.join(", ")}` : "";
  return `There is no command \`${word}\`${hint}. \`dragoman --help\` lists all commands.`;
}

function helpFor(words: string[]): string {
  const command = words.find((word) => !word.startsWith("-"));
  return `\`dragoman ${command ? `${command} ` : ""}--help\` shows its arguments and options.`;
}

/** Every command with its options; the table in cli/README.md is generated from it. Nothing is read or run yet. */
export function commandLine(argv: string[], version: string): CAC {
  const cli = cac("dragoman");
  cli.help(withoutDefaults);
  cli.version(version);
  cli.outputVersion = () => {}; // `runCommand` prints it, even after a command
  const given = givenIn(argv, version);
  addStart(cli, given);
  addService(cli, given, argv, (flags) => startOptions(given, flags));
  for (const add of [
    addAuth,
    addUsageAndModels,
    addBudgets,
    addKeys,
    addConnect,
    addDatabase,
    addMembers,
    addDoctor,
    addHealth,
    addUpdate,
    addCompletion,
  ])
    add(cli, given);
  return cli;
}

/** cac takes every `--no-…` for a switch that is on, and says so: the words of such an option say what it does. */
const withoutDefaults = (sections: { title?: string; body: string }[]) =>
  sections.map((section) => ({ ...section, body: section.body.replaceAll(" (default: true)", "") }));

interface StartFlags {
  json?: boolean;
  demo?: boolean;
  allowOpen?: boolean;
  stdinLifetime?: boolean;
  updateNotice?: boolean;
}

function addStart(cli: CAC, given: Given): void {
  cli
    .command("start", "Start the server")
    .option("--port <number>", "Port to listen on; 0 picks a free one", { default: 4141 })
    .option("--host <address>", "Address to listen on", { default: "127.0.0.1" })
    .option("--json", "When ready, print one line of JSON on stdout, and nothing else there")
    .option("--demo", "Serve scripted answers: no account, no network, no charge")
    .option("--idp-token <token>", "Use this GitHub token for this run only; - reads it from the first line of stdin")
    .option("--github-token <token>", "The same as --idp-token")
    .option("--stdin-lifetime", "Stop when stdin closes, for example because the parent program ended")
    .option("--parent-pid <pid>", "Stop when this process ends")
    .option("--enterprise-url <host>", "Your enterprise's own GitHub host, such as company.ghe.com")
    .option("--oauth-app <app>", "App to sign in with: vscode (default), opencode, or a client ID")
    .option("--allow-open", "Allow other machines to connect even though no client key is configured")
    .option("--admin-auth <when>", "always: require ADMIN_TOKEN for the admin API on this machine too")
    .option(
      "--trust-proxy <ranges>",
      "Reverse proxies, such as 10.0.0.0/8, that name the client's address in x-forwarded-for",
    )
    .option(
      "--drain <seconds>",
      "How long running requests may finish after a signal, while health checks are answered",
    )
    .option("--log-format <format>", "text or json: one JSON object per line, with every field of a request's row")
    .option("--log-file <path>", "Write the log to this file instead of stderr; rotated at 10 MB")
    .option("--no-update-notice", "Do not check once a day for a newer version")
    .example("  dragoman start --demo")
    .action(async (flags: StartFlags) => {
      const options = startOptions(given, flags);
      const { start } = await import("./start/start");
      return start(options);
    });
}

function startOptions({ version, text, environment, signInWith }: Given, flags: StartFlags): StartOptions {
  const from = environment();
  return {
    version,
    environment: from,
    port: portFrom(text("port")),
    host: text("host"),
    json: flags.json === true,
    demo: flags.demo === true,
    allowOpen: flags.allowOpen === true,
    stdinLifetime: flags.stdinLifetime === true,
    parentPid: processFrom(text("parent-pid")),
    adminAuth: adminAuthFor(text("admin-auth")),
    trustProxy: rangesIn(text("trust-proxy")),
    token: text("idp-token") ?? text("github-token"),
    drainMs: drainFrom(text("drain")),
    logFormat: logFormatFrom(text("log-format")),
    logFile: text("log-file"),
    noUpdateNotice: flags.updateNotice === false,
    ...signInWith(from),
  };
}

/** @throws UsageError if there are none between the commas. */
function rangesIn(given: string | undefined): string[] {
  const ranges = given?.split(/[\s,]+/).filter(Boolean) ?? [];
  if (given !== undefined && ranges.length === 0)
    throw new UsageError("--trust-proxy names no address; give it some, such as 10.0.0.0/8, or leave it out.");
  return ranges;
}

function addAuth(cli: CAC, { version, environment, signInWith }: Given): void {
  for (const [name, what] of [
    ["auth", "Sign in to GitHub, or sign in again"],
    ["auth add", "Sign in with another account of your own"],
  ] as const)
    cli
      .command(name, what)
      .option("--oauth-app <app>", "App to sign in with: vscode (default), opencode, or a client ID")
      .option("--enterprise-url <host>", "Your enterprise's own GitHub host, such as company.ghe.com")
      .action(async () => {
        const from = environment();
        const { authSignIn } = await import("./auth");
        return authSignIn({ version, environment: from, another: name === "auth add", ...signInWith(from) });
      });
  cli
    .command("auth ls", "List the accounts that are signed in")
    .option("-q, --quota", "Show the remaining quota of each account, as GitHub reports it now")
    .action(async (options: { quota?: boolean }) => {
      const { authList } = await import("./auth");
      return authList({ version, environment: environment(), quota: options.quota === true });
    });
  cli
    .command("auth rm [index_or_username]", "Remove an account, by its number in `auth ls` or by its name")
    .option("--force", "Do not ask for confirmation")
    .action(async (named: string | undefined, options: { force?: boolean; "--"?: string[] }) => {
      const which = named ?? options["--"]?.[0];
      if (which === undefined)
        throw new UsageError("Name the account: its number in `dragoman auth ls`, or its user name.");
      const { authRemove } = await import("./auth");
      return authRemove({ version, environment: environment(), which, force: options.force === true });
    });
}

function addUsageAndModels(cli: CAC, { version, text, environment, enterprise }: Given): void {
  cli
    .command("usage", "Show the remaining quota of each account")
    .option("--json", "Print JSON, as GET /usage returns it")
    .option(
      "--format <text>",
      "Print one line for status bars, of {account}, {remaining}, {entitlement}, {used}, {percent}, {unit}, {state} and {reset}",
    )
    .option("--watch [seconds]", "Print it again every 30 seconds, or at another interval")
    .action(async (options: { json?: boolean; watch?: unknown }) => {
      const from = environment();
      const watch = watchFrom(options.watch);
      const { usage } = await import("./usage");
      return usage({
        version,
        environment: from,
        json: options.json === true,
        format: text("format"),
        watch,
        enterpriseHost: enterprise(from),
      });
    });
  cli
    .command("models", "List the models of the running server, with their limits and cost")
    .option("--json", "Print JSON, as GET /api/admin/models returns it")
    .action(async (options: { json?: boolean }) => {
      const { models } = await import("./models");
      return models({ environment: environment(), json: options.json === true });
    });
}

function addConnect(cli: CAC, { text, environment }: Given): void {
  cli
    .command("connect [client]", "Set up a client to use dragoman; without a name, list the clients")
    .option("--print", "Print its settings (default)")
    .option("--write", "Write the settings to its own file, after a backup, and make one test call")
    .option("--undo", "Restore the file as it was before dragoman wrote to it")
    .option("--force", "With --undo: also undo settings that were changed since; a copy of the file is kept")
    .option("-y, --yes", "With --undo: do not ask")
    .option("--model <id>", "The model to use, instead of the newest that suits the client")
    .option("--key <key>", "The client key to use, instead of a new one named after the client")
    .option("--shell <name>", "Print commands for this shell: bash, fish, powershell or cmd")
    .option("--test", "Make the test call even if no model is free of charge")
    .action(async (client: string | undefined, options: ConnectFlags) => {
      const { connectFrom } = await import("./connect/connect");
      return connectFrom({
        ...options,
        environment: environment(),
        client,
        model: text("model"),
        key: text("key"),
        shell: text("shell"),
      });
    });
}

function addDoctor(cli: CAC, { version, text, environment, enterprise }: Given): void {
  cli
    .command("doctor", "Check the setup and say how to fix problems; changes nothing")
    .option("--json", "Print one JSON object")
    .option(
      "--deep",
      "Ask each endpoint of Copilot once and compare its answers with what is known; says first what it costs",
    )
    .option("--yes", "With --deep: do not ask for confirmation")
    .option(
      "--report [file]",
      "Write a file to attach to an issue, without secrets and private names; with --deep also what the upstream's answers look like, as JSON",
    )
    .option(
      "--budget <number>",
      "With --yes: AI credits or premium requests that the report's looks may cost; else only free ones",
    )
    .option("--compare <file>", "Compare such a JSON, of any machine, with what this version assumes")
    .option("--port <number>", "The port that `start` will use", { default: 4141 })
    .action(async (options: { json?: boolean; deep?: boolean; yes?: boolean; report?: unknown }) => {
      const compared = text("compare");
      if (compared !== undefined) return (await import("./compare")).compareReport(compared);
      const from = environment();
      const { doctor } = await import("./doctor");
      return doctor({
        version,
        environment: from,
        port: portFrom(text("port")),
        json: options.json === true,
        enterpriseHost: enterprise(from),
        deep: options.deep === true,
        yes: options.yes === true,
        budget: text("budget"),
        report: fileFrom(options.report),
      });
    });
}

function addUpdate(cli: CAC, { version, environment }: Given): void {
  cli
    .command("update", "Replace this executable by the newest release, or say how to update otherwise")
    .option("--check", "Check for an update without installing it")
    .option("-y, --yes", "Do not ask")
    .action(async (options: { check?: boolean; yes?: boolean }) => {
      const { update } = await import("./update/update");
      return update({
        version,
        environment: environment(),
        check: options.check === true,
        yes: options.yes === true,
      });
    });
}

function addHealth(cli: CAC, { environment }: Given): void {
  cli
    .command("health", "Say whether the running server is ready, for health checks of containers")
    .option("--json", "Print one JSON object")
    .action(async (options: { json?: boolean }) => {
      const { healthCheck } = await import("./health");
      return healthCheck({ environment: environment(), json: options.json === true });
    });
}

function addCompletion(cli: CAC): void {
  cli
    .command("completion <shell>", "Print a completion script for bash, zsh, fish or powershell")
    .action(async (shell: string) => {
      const { completion } = await import("./completion");
      print(completion(shell, cli).trimEnd());
      return 0;
    });
}

/** Joins `auth add` or `key add` to one command with its own options and help. `-1` is an invalid number, not an option; `-` is a value. */
function joined(argv: string[], { commands }: CAC): string[] {
  const [first, second, ...rest] = argv.flatMap((word, at) =>
    word === "-" && argv[at - 1]?.startsWith("--")
      ? []
      : argv[at + 1] === "-" && word.startsWith("--")
        ? `${word}=-`
        : word,
  );
  const command = commands.find(({ name }) => name === `${first} ${second}`)?.name;
  if (command === undefined) return [first, second].filter((word) => word !== undefined).concat(rest);
  const numbers = rest.filter((word) => command === "auth rm" && /^-\d+$/.test(word));
  return [command, ...rest.filter((word) => !numbers.includes(word)), ...(numbers.length ? ["--", ...numbers] : [])];
}

function adminAuthFor(given: string | undefined): AdminAuth {
  if (given === undefined || given === "always") return given ?? "remote";
  throw new UsageError("--admin-auth must be: always.");
}

/** Milliseconds. */
function drainFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 86_400) return Number(text) * 1000;
  throw new UsageError("--drain must be a whole number of seconds from 0 to 86400.");
}

function logFormatFrom(text = "text"): LogFormat {
  const format = logFormats.find((name) => name === text);
  if (format) return format;
  throw new UsageError(`--log-format must be one of: ${logFormats.join(", ")}.`);
}

function complain(sentence: string, code: number): number {
  say(printable(`dragoman: ${sentence}`));
  return code;
}

function portFrom(text: string | undefined): number {
  if (text === undefined) return 4141;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new UsageError("--port must be a whole number from 0 to 65535.");
}

/** Seconds. */
function watchFrom(given: unknown): number | undefined {
  if (given === undefined || given === false) return undefined;
  if (given === true) return 30;
  const seconds = Number(given);
  if (seconds >= 1 && seconds <= 86_400) return seconds;
  throw new UsageError("--watch must be a number of seconds from 1 to 86400.");
}

function processFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const pid = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (pid === process.pid)
    throw new UsageError("--parent-pid is dragoman's own process ID; it must be the ID of another process.");
  if (pid > 0 && pid < 2 ** 31) return pid;
  throw new UsageError("--parent-pid must be a process ID.");
}
