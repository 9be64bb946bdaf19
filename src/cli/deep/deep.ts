/**
 * `dragoman doctor --deep`: asks each endpoint of Copilot once and compares its answers with what is known, so that the
 * owner of a real account sees whether this version fits the upstream of today. It says first what that costs.
 */

import { modelShape } from "../../books/changes/known-names";
import { parseConfig } from "../../config/schema";
import { asProxyError } from "../../lib/errors";
import { plural } from "../../lib/format";
import { isObject, parseJson } from "../../lib/json";
import { differencesIn } from "../../lib/json-shape";
import { addedCost } from "../../lib/money";
import { readText } from "../../lib/net/out/body";
import { singleLimit } from "../../lib/net/out/clock";
import { Account, type InspectedAnswer } from "../../people/accounts/account";
import { hostsFor } from "../../people/accounts/hosts";
import { temporaryAccount } from "../../people/accounts/temporary-account";
import { type Copilot, openCopilot } from "../../proxy/upstream/copilot/copilot";
import { type Model, readModel } from "../../proxy/upstream/models/model";
import { savedAccounts } from "../checks/accounts";
import { about, type CheckContext, type Finding } from "../checks/check";
import { atTerminal, confirm, interrupted, say } from "../terminal";
import { UsageError } from "../usage-error";
import { type Look, look } from "./look";
import { type PlannedCall, planCalls, upTo } from "./plan";

/** A test of the whole path to Copilot; undefined if the person declines. */
export async function deepFindings(context: CheckContext, yes: boolean): Promise<Finding[] | undefined> {
  const account = firstAccount(context);
  const copilot = openCopilot({ current: context.config ?? parseConfig({}) }, context.version);
  if (!account) return [about("deep").fail("No GitHub account is signed in here.", "Run `dragoman auth`.")];
  let models: ListedModels;
  try {
    models = await listModels(copilot, account);
  } catch (thrown) {
    return [about("GET /models").fail(asProxyError(thrown).message)];
  }
  const calls = planCalls(models.models);
  if (!(await agreed(account, calls, yes))) return undefined;
  const findings = [judgeModels(models)];
  // One after the other: a burst of calls is what an abuse detector looks for.
  for (const call of calls) findings.push(judge(call, await look(copilot, account, call)));
  return findings;
}

/** @param inspect Called with the answers that numbers are read from. */
export function firstAccount(
  context: CheckContext,
  inspect?: (where: InspectedAnswer, answer: unknown) => void,
): Account | undefined {
  const { environment, version, logger, enterpriseHost } = context;
  const open = (known: ConstructorParameters<typeof Account>[0], host?: string) =>
    new Account(known, {
      hosts: hostsFor(host, environment),
      version,
      logger,
      inspect: (where, _, answer) => inspect?.(where, answer),
    });
  const temporary = temporaryAccount(environment);
  if (temporary) return open(temporary, enterpriseHost);
  const [saved] = savedAccounts(context).accounts;
  return saved && open(saved, saved.host);
}

interface ListedModels {
  models: Model[];
  /** Names of fields. */
  news: string[];
  missing: string[];
}

/** @throws ProxyError */
async function listModels(copilot: Copilot, account: Account): Promise<ListedModels> {
  const call = { path: "/models", intent: "model-access" as const, requestId: crypto.randomUUID() };
  const response = await copilot.call(await account.copilotToken(), { ...call, limits: singleLimit(30_000) });
  const json = parseJson(await readText(response, 32 * 1024 * 1024));
  const items = isObject(json) && Array.isArray(json.data) ? json.data.filter(isObject) : [];
  const differences = items.flatMap((item) => differencesIn(item, modelShape()));
  const named = (isMissing: boolean) => [
    ...new Set(differences.filter(({ kind }) => (kind === "missing") === isMissing).map(({ path }) => path)),
  ];
  return { models: items.flatMap((item) => readModel(item) ?? []), news: named(false), missing: named(true) };
}

/** Says what it costs, and asks. @throws UsageError where nobody can answer */
async function agreed(account: Account, calls: readonly PlannedCall[], yes: boolean): Promise<boolean> {
  const lines = calls.map(({ path, model, cost }) => `  POST ${path} with ${model.id}: ${upTo(cost)}`);
  const all = upTo(addedCost(calls.map(({ cost }) => cost)));
  say(`This asks GitHub Copilot ${plural(calls.length, "time")} with the account ${account.id}:`, ...lines);
  say(`It costs ${all}${all === "nothing" ? "" : " in all"}.`);
  if (yes) return true;
  if (!atTerminal()) throw new UsageError("Nobody can answer here: add --yes to allow these calls.");
  return confirm("Go on?", true, interrupted());
}

function judgeModels({ models, news, missing }: ListedModels): Finding {
  const finding = about("GET /models");
  if (models.length === 0) return finding.fail("It lists no model that can be read.", advice);
  return conclude(finding, `It lists ${plural(models.length, "model")}`, {
    news: news.map((name) => `field ${name}`),
    missing,
  });
}

function judge({ path, model }: PlannedCall, { ms, problem, ...differences }: Look): Finding {
  const finding = about(`POST ${path}`);
  if (problem !== undefined) return finding.fail(`${model.id}: ${problem}${newsOf(differences.news)}`, advice);
  return conclude(finding, `${model.id} answered in ${ms} ms`, differences);
}

const advice = "Attach the report to an issue.";

/** At most so many names in a sentence. */
const maxShown = 12;

function conclude(
  finding: ReturnType<typeof about>,
  what: string,
  { news, missing }: Pick<Look, "news" | "missing">,
): Finding {
  if (missing.length > 0)
    return finding.fail(`${what}, but something is missing: ${listed(missing)}.${newsOf(news)}`, advice);
  if (news.length > 0)
    return finding.warn(`${what}.${newsOf(news)} That may do no harm; look for an update too.`, advice);
  return finding.ok(`${what}, and everything in it is known.`);
}

const newsOf = (news: readonly string[]): string => (news.length === 0 ? "" : ` New: ${listed(news)}.`);

function listed(names: readonly string[]): string {
  const more = names.length - maxShown;
  return names.slice(0, maxShown).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
