/**
 * What is right and wrong with a running server, in a sentence each. The page Health shows all facts, the Overview those that
 * need somebody, the line of the start that of the access, and `dragoman doctor` asks for those that are not good.
 */

import { isPlainFact, warningInWords, warningsOf } from "../books/changes/warnings";
import { duration, plural } from "../lib/format";
import type { App } from "./app";

export interface Fact {
  name: string;
  /** `idle`: worth knowing, and no fault. */
  state: "good" | "warn" | "bad" | "idle";
  /** What is so: a sentence. */
  says: string;
  /** What follows from it, and what to do: sentences, or empty. */
  more: string;
  /** The admin page where it is shown or can be changed. */
  page: string;
}

/** In the order in which they are shown. */
export const factsOf = (app: App): Fact[] => [
  accountsFact(app),
  ...databaseFact(app),
  historyFact(app),
  ...ledgerFact(app),
  configFact(app),
  ...upstreamFact(app),
  ...warningFacts(app),
  accessFact(app),
  adminFact(app),
  fieldsFact(app),
];

/** All that a fact says, for a line. */
export const wholeOf = ({ says, more }: Fact): string => `${says} ${more}`.trimEnd();

/** Makes the facts about one thing. */
const about = (name: string, page: string) => {
  const fact =
    (state: Fact["state"]) =>
    (says: string, more = ""): Fact => ({ name, state, says, more, page });
  return { good: fact("good"), warn: fact("warn"), bad: fact("bad"), idle: fact("idle") };
};

function accountsFact({ accounts, allAccounts }: App): Fact {
  const fact = about("Accounts", "/admin/accounts");
  const ready = accounts.filter(({ state }) => state.name === "ready").length;
  const failed = accounts.filter(({ state }) => state.name === "failed");
  if (allAccounts.length === 0)
    return fact.bad("No account is signed in.", "Sign in on the page Accounts, or run `dragoman auth`.");
  // The owner of a team may have none.
  if (accounts.length === 0) return fact.idle(`None of yours; ${plural(allAccounts.length, "account")} of members.`);
  if (ready === 0) return fact.bad(`None of ${plural(accounts.length, "account")} is ready.`);
  if (failed.length === 0) return fact.good(`${ready} of ${accounts.length} ready.`);
  return fact.warn(`${ready} of ${accounts.length} ready; failed: ${failed.map(({ id }) => id).join(", ")}.`);
}

function databaseFact({ team }: App): Fact[] {
  if (!team) return [];
  const fact = about("Database", "/admin/health");
  if (!team.isDatabaseAway) return [fact.good("It answers.")];
  return [
    fact.bad(
      `The database has not answered for ${duration(team.silence)}.`,
      "Requests are served for a while with what this server knows; nothing can be changed.",
    ),
  ];
}

function historyFact({ history, team }: App): Fact {
  const fact = about("History", "/admin/health");
  const lost = history.lost > 0 ? missing(history.lost, "the history") : "";
  if (!history.degraded)
    return lost === ""
      ? fact.good("Every request is recorded.")
      : fact.warn(lost, "Later ones are recorded. The log says why these could not be kept.");
  const now = team
    ? "Requests are still served. Their entries wait on this server until the database takes them, as long as its disk has room."
    : "Requests are still served but not recorded. Check that the disk is not full.";
  return fact.bad("The history cannot be written.", `${now} ${lost}`.trimEnd());
}

const missing = (count: number, where: string) =>
  `${plural(count, "request")} since the start ${count === 1 ? "is" : "are"} missing in ${where}.`;

function ledgerFact({ budgets }: App): Fact[] {
  const { lost } = budgets;
  if (lost === 0) return [];
  const fact = about("Budgets", "/admin/budgets");
  return [
    fact.warn(missing(lost, "the budgets"), "More was used than they show. The log says why it could not be counted."),
  ];
}

function configFact({ config }: App): Fact {
  const fact = about("Config", "/admin/config");
  if (config.fault !== undefined)
    return fact.bad("The config is not valid.", `${config.fault} The previous config stays in effect.`);
  if (config.waiting.length > 0)
    return fact.warn(`Restart dragoman to apply changes in the config file: ${config.waiting.join(", ")}.`);
  return fact.good("The config is valid.");
}

function upstreamFact({ losses }: App): Fact[] {
  const count = losses.current.length;
  if (count === 0) return [];
  const says = `Copilot no longer sends ${plural(count, "member")} that numbers are read from.`;
  return [about("Upstream", "/admin/health").warn(says, "The page Health names them.")];
}

/** What GitHub's model lists tell. */
function warningFacts({ accounts, catalogue }: App): Fact[] {
  const given = warningsOf(accounts.flatMap((account) => catalogue.listOf(account)));
  const fact = about("Warnings", "/admin/models");
  return given.map((warning) => (isPlainFact(warning) ? fact.idle : fact.warn)(warningInWords(warning)));
}

/** Who may send requests. */
export function accessFact({ clientKeys, members, openTo, exposed, trustedProxies }: App): Fact {
  const fact = about("API access", "/admin/keys");
  const keys = clientKeys.length;
  if (members?.needKeys) return fact.good("A key of a member, or one of the owner's, is required.");
  if (keys === 0 && openTo === "nobody")
    return fact.bad(
      "Nobody is served.",
      "Other machines reach this server, and it has no client key. Create one under Keys, or start it with --allow-open.",
    );
  if (keys === 0 && openTo === "anyone")
    return exposed
      ? fact.bad(
          "Anyone who can reach this machine can use your accounts.",
          "The server accepts connections from other machines, and no client key is set. Create one under Keys.",
        )
      : fact.bad(
          "Anyone who comes through a proxy or tunnel can use your accounts.",
          "The server was started with --allow-open, and no client key is set. Create one under Keys.",
        );
  if (keys === 0 && trustedProxies)
    return fact.bad(
      "Nobody is served who may have come through a proxy.",
      `--trust-proxy names one, and no client key is set. Create one under Keys${members ? ", or invite a member" : ""}.`,
    );
  if (keys === 0)
    return fact.good(
      "No client key is required from programs on this machine.",
      "Web pages are refused, except those of `allowedOrigins`.",
    );
  const who = exposed ? "from this machine and from others" : "from programs on this machine";
  return fact.good(`${keys === 1 ? "The client key" : `One of ${plural(keys, "client key")}`} is required ${who}.`);
}

/** Whether callers from this machine need the admin token too: behind a trusted proxy here, others come from here as well. */
export const asksTokenHere = ({ adminAuth, trustedProxies }: App): boolean =>
  adminAuth === "always" || trustedProxies?.trusts("127.0.0.1") === true;

function adminFact(app: App): Fact {
  const { environment, members } = app;
  const fact = about("Admin access", "/admin/health");
  const isAsked = asksTokenHere(app);
  if (environment.adminToken === undefined)
    return isAsked
      ? fact.warn("Nobody, as callers from this machine need a token too: set ADMIN_TOKEN.")
      : fact.idle("This machine only: ADMIN_TOKEN is not set.");
  const machines = isAsked ? "Every machine" : "This machine, and other machines";
  return fact.good(`${machines} with the admin token${members?.needKeys ? "; members with their keys" : ""}.`);
}

function fieldsFact({ unsupportedParams }: App): Fact {
  const fact = about("Unsupported fields", "/admin/models");
  const refused = unsupportedParams.all().length;
  return refused === 0
    ? fact.good("None found recently.")
    : fact.idle(`${plural(refused, "field")} currently removed from requests; see Models.`);
}
