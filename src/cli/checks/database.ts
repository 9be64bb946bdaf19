/** The database of a team: whether it can be reached and used, and whether its secrets can be opened. */
import { inHome } from "../../config/home-names";
import { ProxyError } from "../../lib/errors";
import { plural } from "../../lib/format";
import type { KnownServer } from "../../people/keys/team";
import type { DatabaseReport } from "../../team/inspect";
import { about, type CheckContext, type Finding } from "./check";

export async function checkDatabase({ environment }: CheckContext): Promise<Finding[]> {
  const database = about("database");
  const { databaseUrl, sealKey } = environment;
  if (databaseUrl === undefined) return [];
  if (!sealKey)
    return [
      database.fail(
        "DRAGOMAN_SEAL_KEY is not set, so dragoman does not start with DRAGOMAN_DATABASE_URL.",
        "Set it to 32 random bytes as base64, such as `openssl rand -base64 32` prints.",
      ),
    ];
  const { inspectDatabase } = await import("../../team/inspect");
  try {
    const report = await inspectDatabase(environment);
    const { server, isNew, isTooNew, lacksKey, accounts } = report;
    const name = `Postgres ${server}`;
    if (Number.parseInt(server, 10) < 15) return [database.fail(`${name} is too old.`, "Use Postgres 15 or newer.")];
    const { otherSentence, otherAdvice } = await import("../../team/settings");
    if (Object.keys(report.otherSettings).length > 0)
      return [database.fail(otherSentence(report.otherSettings), otherAdvice(report.otherSettings))];
    if (isNew) return [database.ok(`${name} can be reached; the first start makes the tables.`)];
    if (isTooNew)
      return [
        database.fail(
          `${name} was changed by a newer dragoman, which this version does not understand.`,
          "Update dragoman.",
        ),
      ];
    if (lacksKey)
      return [
        database.fail(
          `${name} can be reached, but its secrets are sealed with a key that is not set here.`,
          "Set DRAGOMAN_SEAL_KEY to the key that the other servers have.",
        ),
      ];
    return [
      database.ok(`${name} has ${plural(accounts, "account")}.`),
      ...serverFindings(report),
      ...memberFindings(report),
      ...(await queueFindings(environment.home)),
    ];
  } catch (thrown) {
    let cause = thrown instanceof ProxyError ? thrown.details.cause : thrown;
    while (cause instanceof Error && cause.cause !== undefined) cause = cause.cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    return [database.fail(`The database cannot be reached or used: ${reason}.`, "Check DRAGOMAN_DATABASE_URL.")];
  }
}

const team = about("team");

function serverFindings({ servers }: DatabaseReport): Finding[] {
  if (servers.length === 0) return [team.ok("No server is running.")];
  const privateNames = servers.map(({ host }) => host);
  const versions = new Set(servers.map(({ version }) => version));
  const hasNoLeader = servers.every(({ isLeader }) => !isLeader);
  const findings = [
    team.ok(`${plural(servers.length, "server")} running: ${servers.map(described).join(", ")}.`),
    ...(versions.size > 1
      ? [team.warn("The servers have different versions.", "Update all of them, unless that is under way.")]
      : []),
    ...(hasNoLeader
      ? [
          team.warn(
            "No server leads, so no old rows are removed and no notices are sent.",
            "Run this again in a minute; if it stays so, restart the servers one after the other.",
          ),
        ]
      : []),
  ];
  return findings.map((finding) => ({ ...finding, privateNames }));
}

const described = ({ host, version, isLeader }: KnownServer) => `${host} (${version}${isLeader ? ", leads" : ""})`;

/** Members that are named in a sentence. */
const maxNamed = 10;

function memberFindings({ members, withoutAccount }: DatabaseReport): Finding[] {
  if (withoutAccount.length === 0) return [team.ok(`${plural(members, "member")}.`)];
  const [named, more] = [withoutAccount.slice(0, maxNamed), withoutAccount.length - maxNamed];
  const finding = team.warn(
    `${plural(members, "member")}; without an account: ${named.join(", ")}${more > 0 ? `, and ${more} more` : ""}.`,
    "They sign in on the page Accounts, or by another link of `dragoman member add`.",
  );
  return [{ ...finding, privateNames: named }];
}

/** What a server left in this data folder. */
async function queueFindings(home: string): Promise<Finding[]> {
  const { countWaiting } = await import("../../team/disk-queue");
  const waiting = countWaiting(inHome(home, "waiting"));
  if (waiting === 0) return [];
  return [
    team.warn(
      `${plural(waiting, "entry", "entries")} of the history and the budgets wait in ${inHome(home, "waiting")}.`,
      "They go to the database while a server runs with this data folder.",
    ),
  ];
}
