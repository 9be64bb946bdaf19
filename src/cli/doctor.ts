/** `dragoman doctor`: looks at everything that has to be right, changes nothing, and says what to do. */
import { homedir } from "node:os";
import type { Environment } from "../config/environment";
import { secretsIn } from "../config/secrets";
import { lookAtConfig } from "../config/store";
import { asProxyError } from "../errors";
import { createLogger, type Logger } from "../logger";
import { withTimeLimit } from "../net/time-limit";
import { checkAccess } from "./checks/access";
import { checkAccounts } from "./checks/accounts";
import { about, type Check, type CheckContext, counted, type Finding } from "./checks/check";
import { checkClients } from "./checks/clients";
import { checkConfig, checkFolder, checkHistory } from "./checks/files";
import { checkProxy, checkReach, checkTrust } from "./checks/network";
import { checkPort } from "./checks/port";
import { checkProgram } from "./checks/program";
import { checkVariables } from "./checks/variables";
import { table } from "./table";
import { print, printJson } from "./terminal";

export interface DoctorOptions {
  version: string;
  environment: Environment;
  port: number;
  json: boolean;
  enterpriseHost?: string;
}

/** In the order they are told; all begin at once. */
const checks: [string, Check][] = [
  ["program", checkProgram],
  ["data folder", checkFolder],
  ["config", checkConfig],
  ["history", checkHistory],
  ["port", checkPort],
  ["access", checkAccess],
  ["proxy", checkProxy],
  ["CA file", checkTrust],
  ["network", checkReach],
  ["accounts", checkAccounts],
  ["clients", checkClients],
  ["variables", checkVariables],
];

/** Milliseconds for all of them together. */
const timeoutMs = 10_000;

/** @returns The exit code: 1 when something failed. */
export async function doctor(options: DoctorOptions): Promise<number> {
  const { version, environment, port, json, enterpriseHost } = options;
  const logger = quietLogger(environment);
  const home = homedir();
  const subject: CheckContext = { version, environment, env: process.env, home, port, enterpriseHost, logger };
  const shown = redaction(home, logger);
  const platform = `${process.platform} ${process.arch}, Bun ${Bun.version}`;
  const began = performance.now();
  const under = checks.map(([name, check]) => within(name, check, subject));
  const found: Finding[] = [];
  for (const findings of under)
    for (const finding of await findings) {
      const { name, state, message, todo } = finding;
      found.push({ name, state, message: shown(message), ...(todo === undefined ? {} : { todo: shown(todo) }) });
      if (!json) print(...linesOf(found.at(-1)!));
    }
  const failed = found.filter(({ state }) => state === "fail").length;
  if (json) printJson({ version, platform, checks: found });
  else print(`\n${summaryOf(found)} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  return failed > 0 ? 1 : 0;
}

async function within(name: string, check: Check, subject: CheckContext): Promise<Finding[]> {
  // Each is a task of its own: one that cannot be done must not keep the others from being told.
  const done = Promise.resolve()
    .then(() => check(subject))
    .catch((thrown) => [about(name).fail(`This could not be looked at: ${asProxyError(thrown).message}`)]);
  return withTimeLimit(done, timeoutMs, () => [
    about(name).fail(
      `This was not known after ${timeoutMs / 1000} s.`,
      "Try again; something on the way is very slow.",
    ),
  ]);
}

function linesOf({ name, state, message, todo }: Finding): string[] {
  const [line] = table([[state.padEnd(4), name.padEnd(18), message]]);
  return todo === undefined ? [line!] : [line!, `${" ".repeat(6)}${" ".repeat(20)}→ ${todo}`];
}

function summaryOf(found: Finding[]): string {
  const failed = found.filter(({ state }) => state === "fail").length;
  const warned = found.filter(({ state }) => state === "warn").length;
  if (failed + warned === 0) return "All is well.";
  const parts = [
    failed > 0 ? `${failed} failed` : "nothing failed",
    ...(warned > 0 ? [counted(warned, "warning")] : []),
  ];
  return `${parts.join(", ")}.`.replace(/^n/, "N");
}

/** Says nothing, and knows every secret that must not be told. */
function quietLogger({ clientKey, adminToken, anthropicApiKey, githubToken, configFile }: Environment): Logger {
  const logger = createLogger(
    () => "error",
    () => {},
  );
  for (const secret of [clientKey, adminToken, anthropicApiKey, githubToken]) if (secret) logger.conceal(secret);
  try {
    for (const secret of secretsIn(lookAtConfig(configFile)?.stored)) logger.conceal(secret);
  } catch {
    // a check says why the config does not read
  }
  return logger;
}

/** As it may be pasted anywhere: no secret, and the person's own folder as `~`, or as `$HOME` where quotes keep `~` as it is. */
function redaction(home: string, logger: Logger): (text: string) => string {
  const own = home.replace(/[\\/]+$/, "");
  if (own.length <= 1) return (text) => logger.scrub(text, 2000);
  const named = new RegExp(`("?)${RegExp.escape(own)}(?![\\w-])`, "g");
  return (text) =>
    logger.scrub(
      text.replace(named, (_, quote: string) => (quote ? '"$HOME' : "~")),
      2000,
    );
}
