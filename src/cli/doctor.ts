/** `dragoman doctor`: runs every check, changes nothing, and says how to fix what failed. */
import { type Environment, homeFolder, secretsOfEnvironment } from "../config/environment";
import { lookAtConfig } from "../config/read-config";
import { parseConfig } from "../config/schema";
import { secretsIn } from "../config/secrets";
import { asProxyError } from "../lib/errors";
import { duration, plural } from "../lib/format";
import { type Logger, quietLogger } from "../lib/logger";
import { withTimeLimit } from "../lib/net/time-limit";
import { withoutEnd } from "../lib/without-end";
import { checkAccess } from "./checks/access";
import { checkAccounts, checkBindings } from "./checks/accounts";
import { about, type Check, type CheckContext, type Finding } from "./checks/check";
import { checkClient, checkClients } from "./checks/clients";
import { checkDatabase } from "./checks/database";
import { checkConfig, checkFolder, checkHistory, checkStores } from "./checks/files";
import { checkFallbacks, checkProviders, checkRoutes } from "./checks/models";
import { checkProxy, checkReach, checkTrust } from "./checks/network";
import { checkPort } from "./checks/port";
import { checkProgram } from "./checks/program";
import { checkVariables } from "./checks/variables";
import { clientNamed } from "./client-named";
import type { LookLimits, Looks } from "./deep/take-looks";
import { columns, table } from "./layout";
import { print, printJson, say, styled } from "./terminal";
import { UsageError } from "./usage-error";

interface DoctorOptions {
  version: string;
  environment: Environment;
  port: number;
  json: boolean;
  /** Ask each endpoint of Copilot once, and write a report. */
  deep: boolean;
  /** Do not ask for confirmation. */
  yes: boolean;
  /** AI credits or premium requests that looks may cost if nobody is asked. */
  budget?: string;
  /** Look at this client's settings only. */
  client?: string;
  /** Write a report to this file; true: to one with a name of its own. */
  report?: string | true;
}

/** In the order of the report; all start at once. */
const checks: [string, Check][] = [
  ["program", checkProgram],
  ["data folder", checkFolder],
  ["config", checkConfig],
  ["history", checkHistory],
  ["stores", checkStores],
  ["database", checkDatabase],
  ["port", checkPort],
  ["access", checkAccess],
  ["proxy", checkProxy],
  ["CA file", checkTrust],
  ["network", checkReach],
  ["accounts", checkAccounts],
  ["bindings", checkBindings],
  ["providers", checkProviders],
  ["fallbacks", checkFallbacks],
  ["routes", checkRoutes],
  ["clients", checkClients],
  ["variables", checkVariables],
];

/** Milliseconds for each check; as all start at once, also for the whole report. */
const timeoutMs = 10_000;

/** @returns The exit code: 1 if a check failed. */
export async function doctor(options: DoctorOptions): Promise<number> {
  const { version, environment, port, json, deep, yes, budget, report, client } = options;
  const { enterpriseHost } = environment;
  const most = budgetFrom(budget);
  const logger = loggerFor(environment);
  const home = homeFolder();
  const read = readConfig(environment);
  for (const secret of secretsIn(read.stored)) logger.conceal(secret);
  const context = { version, environment, env: process.env, home, port, enterpriseHost, logger, ...read };
  const redact = redaction(home, logger);
  const platform = `${process.platform} ${process.arch}, Bun ${Bun.version}`;
  const began = performance.now();
  // Before anything is asked: what was paid for can be kept.
  using file = deep || report ? (await import("./report")).openReport(report === true ? undefined : report) : undefined;
  const wanted: typeof checks = client === undefined ? checks : [["clients", clientCheck(client)]];
  const running = wanted.map(([name, check]) => runCheck(name, check, context));
  const findings: Finding[] = [];
  const names: string[] = [];
  const add = ({ name, state, message, todo, privateNames = [] }: Finding) => {
    names.push(...privateNames);
    const finding = { name, state, message: redact(message), ...(todo !== undefined && { todo: redact(todo) }) };
    findings.push(finding);
    if (!json) print(...linesOf(finding));
  };
  for (const results of running) for (const finding of await results) add(finding);
  const looks = deep ? await deepen(context, { yes, budget: most }, add) : undefined;
  if (file) {
    await file.write(context, { version, platform, findings, names, looks });
    say(`The report is in ${file.path}. Look it through before you attach it to an issue.`);
  }
  if (json) printJson({ version, platform, checks: findings });
  else print(`\n${summaryOf(findings)} (${duration(performance.now() - began)})`);
  return findings.some(({ state }) => state === "fail") ? 1 : 0;
}

/** @throws UsageError for an unknown client */
function clientCheck(name: string): Check {
  const id = clientNamed(name);
  return (subject) => checkClient(id, subject);
}

function budgetFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,6}(?:\.\d{1,6})?$/.test(text)) return Number(text);
  throw new UsageError("--budget must be a number of AI credits or premium requests, such as 0.5.");
}

/**
 * The calls are loaded only if they are wanted: nothing else of a doctor may cost anything.
 * @returns What the looks have found; undefined if the person declines, or nobody is signed in.
 */
async function deepen(
  context: CheckContext,
  limits: LookLimits,
  add: (finding: Finding) => void,
): Promise<Looks | undefined> {
  const [{ deepFindings }, { takeLooks }] = await Promise.all([import("./deep/deep"), import("./deep/take-looks")]);
  const found = await deepFindings(context, limits.yes);
  for (const finding of found ?? [about("deep").warn("No endpoint was asked.")]) add(finding);
  return found && takeLooks(context, limits);
}

async function runCheck(name: string, check: Check, context: CheckContext): Promise<Finding[]> {
  // A check that throws must not stop the report of the others.
  const done = Promise.resolve()
    .then(() => check(context))
    .catch((thrown) => [about(name).fail(`This check could not be run: ${asProxyError(thrown).message}`)]);
  return withTimeLimit(done, timeoutMs, () => [
    about(name).fail(
      `This check did not finish within ${timeoutMs / 1000} s.`,
      "Try again. If it happens again, check the network and the disk.",
    ),
  ]);
}

const tones = { ok: "green", warn: "bold", fail: "red" } as const;
const labels = { ok: "OK", warn: "warning", fail: "failed" } satisfies Record<Finding["state"], string>;

function linesOf({ name, state, message, todo }: Finding): string[] {
  const line = [styled(tones[state], labels[state].padEnd(7)), name.padEnd(columns() < 80 ? 12 : 18), message];
  return table(todo === undefined ? [line] : [line, ["", "", `→ ${todo}`]], { heads: false });
}

function summaryOf(findings: Finding[]): string {
  const count = (wanted: Finding["state"]) => findings.filter(({ state }) => state === wanted).length;
  const [failed, warned] = [count("fail"), count("warn")];
  if (failed + warned === 0) return "Everything is OK.";
  const parts = [
    failed > 0 ? `${failed} failed` : "nothing failed",
    ...(warned > 0 ? [plural(warned, "warning")] : []),
  ];
  return `${parts.join(", ")}.`.replace(/^n/, "N");
}

/** Nothing if the file cannot be read: `checkConfig` says why. */
function readConfig({ configFile }: Environment): Pick<CheckContext, "stored" | "config"> {
  try {
    return lookAtConfig(configFile) ?? { stored: undefined, config: parseConfig({}) };
  } catch {
    return { stored: undefined, config: undefined };
  }
}

/** Knows the secrets of the environment, which must be concealed. */
function loggerFor(environment: Environment): Logger {
  const logger = quietLogger();
  for (const secret of secretsOfEnvironment(environment)) logger.conceal(secret);
  return logger;
}

/** Makes a text safe to paste anywhere: without secrets, and with the home folder as `~`, or as `$HOME` in quotes, where shells do not expand `~`. */
function redaction(home: string, logger: Logger): (text: string) => string {
  const own = withoutEnd(home, "\\/");
  if (own.length <= 1) return (text) => logger.scrub(text, 2000);
  const named = new RegExp(`("?)${RegExp.escape(own)}(?![\\w-])`, "g");
  return (text) =>
    logger.scrub(
      text.replace(named, (_, quote: string) => (quote ? '"$HOME' : "~")),
      2000,
    );
}
