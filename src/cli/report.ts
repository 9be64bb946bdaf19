/** The report of `dragoman doctor`: one file to attach to an issue. It names no person, no secret, and no place that is not public. */

import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { type DriftItem, driftListSchema } from "../books/changes/drift-list";
import { asProxyError, codeOf } from "../lib/errors";
import { utcDay } from "../lib/format";
import { isObject } from "../lib/json";
import { savedAccounts } from "./checks/accounts";
import type { CheckContext, Finding } from "./checks/check";
import type { Looks } from "./deep/take-looks";
import { ask, findServer, readAs } from "./running-server";
import { UsageError } from "./usage-error";

interface ReportParts {
  version: string;
  platform: string;
  /** Redacted as for a terminal. */
  findings: readonly Finding[];
  /** Private names in the findings. */
  names: readonly string[];
  /** What the looks of `--deep` have found. */
  looks?: Looks;
}

/** A report's file, as long as the report is made. Nothing is left of it if nothing was written. */
class ReportFile implements Disposable {
  #written = false;

  constructor(
    readonly path: string,
    private readonly descriptor: number,
  ) {}

  async write(context: CheckContext, parts: ReportParts): Promise<void> {
    const text = withoutPrivateNames(await reportText(context, parts), privateNames(context, parts.names));
    writeFileSync(this.descriptor, text);
    this.#written = true;
  }

  [Symbol.dispose](): void {
    closeSync(this.descriptor);
    if (!this.#written) rmSync(this.path, { force: true });
  }
}

/**
 * Makes the file of a report, which only its owner can read.
 * @param file By default a new one in the current folder, named by the time.
 * @throws UsageError if there is a file of that name, or none can be made there
 */
export function openReport(file?: string): ReportFile {
  const moment = new Date().toISOString().slice(0, 16).replace(/\D/g, "");
  for (let count = 1; ; count += 1) {
    const path = file ?? `dragoman-report-${moment}${count === 1 ? "" : `-${count}`}.md`;
    try {
      return new ReportFile(path, openSync(path, "wx", 0o600));
    } catch (thrown) {
      const exists = codeOf(thrown) === "EEXIST";
      if (exists && file === undefined) continue;
      const why = exists ? "exists already" : `cannot be written (${codeOf(thrown)})`;
      throw new UsageError(`${path} ${why}; name another file with --report <file>.`);
    }
  }
}

async function reportText(context: CheckContext, { version, platform, findings, looks }: ReportParts): Promise<string> {
  const rows = findings.map(({ name, state, message, todo }) => [state, name, todo ? `${message} → ${todo}` : message]);
  return [
    "# dragoman report",
    `dragoman ${version}, ${platform}, ${utcDay(Date.now())}`,
    "Without secrets, prompts, answers, and the names of people and machines; please look it through all the same.",
    "## Checks",
    markdownTable(["state", "check", "result"], rows),
    "## New in the upstream",
    await newInUpstream(context),
    "## Keys that the config sets",
    configKeys(context),
    ...(looks ? ["## The upstream of today", `\`\`\`json\n${JSON.stringify(looks, null, 2)}\n\`\`\``] : []),
    "",
  ].join("\n\n");
}

/** As the running server has seen it. */
async function newInUpstream({ environment }: CheckContext): Promise<string> {
  const server = findServer(environment);
  if (!server) return "No server is running here, so nothing was counted.";
  try {
    const answer = await ask(server, "/api/admin/drift", { timeoutMs: 5_000 });
    const { items, overflow } = readAs(driftListSchema, answer, server);
    if (items.length === 0) return "Nothing, since the server started.";
    const more = overflow > 0 ? `\n\nFurther names were left out ${overflow} times.` : "";
    return markdownTable(["kind", "name", "where", "seen"], items.map(driftRow)) + more;
  } catch (thrown) {
    return `The running server did not say: ${asProxyError(thrown).message}`;
  }
}

const driftRow = ({ kind, name, where, count }: DriftItem) => [kind, `\`${name}\``, where, String(count)];

/** Never a value, and no name that the owner has chosen. */
function configKeys({ config, stored = {} }: CheckContext): string {
  if (!config) return "The config file cannot be read.";
  return (
    Object.keys(stored)
      .map((name) => `\`${name}\``)
      .join(", ") || "None."
  );
}

const markdownTable = (head: string[], rows: string[][]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.map(cell).join(" | ")} |`).join("\n");

const cell = (text: string) => text.replace(/[\n\r]+/g, " ").replaceAll("|", "\\|");

/** What stands for each name that is not public. */
function privateNames(
  { environment, env, enterpriseHost, ...context }: CheckContext,
  found: readonly string[],
): Map<string, string> {
  const names = new Map<string, string>();
  const add = (name: string | undefined, instead: string) => {
    // Short ones are parts of ordinary words.
    if (name !== undefined && name.length > 2 && !publicNames.has(name.toLowerCase())) names.set(name, instead);
  };
  const accounts = attempt(() => savedAccounts({ environment, env, enterpriseHost, ...context }).accounts) ?? [];
  for (const [at, { login, host }] of accounts.entries()) {
    add(login, `account-${at + 1}`);
    add(host, "enterprise-host");
  }
  add(enterpriseHost, "enterprise-host");
  add(hostname(), "this-machine");
  add(
    attempt(() => userInfo().username),
    "this-user",
  );
  // A replaced word is better than a name that stays.
  for (const [at, name] of [...new Set(found)].entries()) names.set(name, `name-${at + 1}`);
  // Also of a config with an error, which the checks name by its place.
  const stored = attempt((): unknown => JSON.parse(readFileSync(environment.configFile, "utf8")));
  for (const text of [...Object.values(env), ...textsIn(stored)]) add(hostIn(text), "private-host");
  for (const name of chosenNames(stored)) add(name, "chosen-name");
  return names;
}

/** Names that tell nothing about a person. */
const publicNames = new Set(
  "localhost 127.0.0.1 [::1] github.com api.github.com api.githubcopilot.com root runner ubuntu node bun user copilot".split(
    " ",
  ),
);

/** The names of providers, keys and budgets, and those that budgets have, which people chose. */
function chosenNames(stored: unknown): string[] {
  if (!isObject(stored)) return [];
  const { providers, auth, budgets } = stored;
  const keys = isObject(auth) && Array.isArray(auth.apiKeys) ? auth.apiKeys : [];
  const ofBudgets = (Array.isArray(budgets) ? budgets : []).filter(isObject);
  const named = [...keys.filter(isObject), ...ofBudgets].map(({ name }) => name);
  const within = ofBudgets.flatMap(({ scope, limits }) => [
    ...(isObject(scope) ? [scope.member, scope.key, scope.account] : []),
    ...(isObject(limits) ? Object.keys(limits) : []),
  ]);
  const names = [...(isObject(providers) ? Object.keys(providers) : []), ...named, ...within];
  return names.filter((name) => typeof name === "string");
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

const hostIn = (text: string | undefined): string | undefined =>
  text && /^[a-z]+:\/\//i.test(text) ? URL.parse(text)?.hostname : undefined;

/** The longest first: one may be a part of another. */
function withoutPrivateNames(text: string, names: ReadonlyMap<string, string>): string {
  const longestFirst = [...names].sort(([one], [other]) => other.length - one.length);
  return longestFirst.reduce(
    (shown, [name, instead]) =>
      shown.replace(new RegExp(`(?<![A-Za-z0-9])${RegExp.escape(name)}(?![A-Za-z0-9])`, "gi"), instead),
    text,
  );
}

/** Undefined where it cannot be read; a check reports why. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
