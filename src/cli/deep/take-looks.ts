/** Takes the looks of `dragoman doctor --deep`: what they found about the upstream of today, for its report. */
import { parseConfig } from "../../config/schema";
import { asProxyError } from "../../errors";
import { plural } from "../../format";
import { isObject } from "../../json";
import { openCopilot } from "../../upstream/copilot/copilot";
import { type Model, readModel } from "../../upstream/models/model";
import { type Cost, costOf } from "../../upstream/models/price";
import type { CheckContext } from "../checks/check";
import { atTerminal, confirm, interrupted, say } from "../terminal";
import { askerOf, type Seen } from "./ask";
import { firstAccount } from "./deep";
import { type DeepLook, type Findings, type LookContext, tokensOfLook } from "./look-parts";
import { deepLooks } from "./looks";
import { costInWords } from "./plan";

export interface LookLimits {
  /** Do not ask. */
  yes: boolean;
  /** AI credits, and premium requests, that looks may cost if nobody is asked. Without it, only free ones are taken. */
  budget?: number;
}

type Skip = "declined" | "no model for it" | "not within the budget" | "no answer";

/** What each look has found, or why it was not taken, by the look's name. */
export type Looks = Record<string, { found: Findings } | { skipped: Skip }>;

/** Takes one look after the other. A person is asked for each that costs something. @returns Undefined if there is no account. */
export async function takeLooks(context: CheckContext, limits: LookLimits): Promise<Looks | undefined> {
  let user: unknown;
  const account = firstAccount(context, (where, answer) => {
    if (where === "user") user = answer;
  });
  if (!account) return undefined;
  const copilot = openCopilot({ current: context.config ?? parseConfig({}) }, context.version);
  const seen: Seen[] = [];
  const ask = askerOf(copilot, account, (one) => seen.push(one));
  const { json } = await ask("/models");
  const items = isObject(json) && Array.isArray(json.data) ? json.data.filter(isObject) : [];
  await account.quota().catch(() => {}); // the report says that nothing is known of it
  const models = items.flatMap((item) => readModel(item) ?? []);
  const looks: Looks = {};
  const allow = allowance(limits);
  for (const look of deepLooks) looks[look.name] = await take(look, { account, items, models, user, ask, seen }, allow);
  return looks;
}

type Allow = (look: DeepLook, cost: Cost, model: Model | undefined) => Promise<Skip | undefined>;

async function take(look: DeepLook, context: LookContext, allow: Allow): Promise<Looks[string]> {
  const model = look.model?.(context);
  if (look.model && !model) return { skipped: "no model for it" };
  const skipped = await allow(look, costOfLook(look, model), model);
  if (skipped) return { skipped };
  try {
    return { found: await look.run(context, model) };
  } catch (thrown) {
    say(`${look.question} ${asProxyError(thrown).message}`);
    return { skipped: "no answer" };
  }
}

function costOfLook({ calls }: DeepLook, model: Model | undefined): Cost {
  if (calls === 0 || !model) return { nanoCredits: 0, premiumUnits: 0 };
  const { nanoCredits, premiumUnits } = costOf(model.price, tokensOfLook, true);
  const times = (amount: number | null) => (amount === null ? null : amount * calls);
  return { nanoCredits: times(nanoCredits), premiumUnits: times(premiumUnits) };
}

/** Free looks are taken. A person answers for each other one; where nobody can, they are taken as long as the budget lasts. */
function allowance({ yes, budget }: LookLimits): Allow {
  const isAsked = atTerminal() && !yes;
  const interruption = isAsked ? interrupted() : undefined;
  const spent = { credits: 0, premium: 0 };
  return async ({ question, calls }, cost, model) => {
    if (interruption?.aborted) return "declined";
    if (calls === 0) return undefined;
    const isUnknown = cost.nanoCredits === null && cost.premiumUnits === null;
    const price = isUnknown ? "It is not known what that costs" : `It costs ${costInWords(cost)}`;
    say(`${question}${model ? ` (${plural(calls, "call")} to ${model.id})` : ""} ${price}.`);
    if (interruption) return (await confirm("Look?", false, interruption)) ? undefined : "declined";
    const next = {
      credits: spent.credits + (cost.nanoCredits ?? 0) / 1e9,
      premium: spent.premium + (cost.premiumUnits ?? 0),
    };
    if (!yes || budget === undefined || isUnknown || next.credits > budget || next.premium > budget)
      return "not within the budget";
    Object.assign(spent, next);
    return undefined;
  };
}
