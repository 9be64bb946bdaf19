/** Takes the looks of `dragoman doctor --deep`: what they found about the upstream of today, for its report. */
import { parseConfig } from "../../config/schema";
import { asProxyError } from "../../lib/errors";
import { plural } from "../../lib/format";
import { isObject } from "../../lib/json";
import { addedCost, type Costs, isUnknown, knownIn } from "../../lib/money";
import { openCopilot } from "../../proxy/upstream/copilot/copilot";
import { type Model, readModel } from "../../proxy/upstream/models/model";
import type { CheckContext } from "../checks/check";
import { atTerminal, confirm, interrupted, say } from "../terminal";
import { askerOf, type Seen } from "./ask";
import { firstAccount } from "./deep";
import { type DeepLook, type Findings, type LookContext, tokensOfLook } from "./look-parts";
import { deepLooks } from "./looks";
import { costOfCalls, upTo } from "./plan";

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

type Allow = (look: DeepLook, cost: Costs, model: Model | undefined) => Promise<Skip | undefined>;

async function take(look: DeepLook, context: LookContext, allow: Allow): Promise<Looks[string]> {
  const model = look.model?.(context);
  if (look.model && !model) return { skipped: "no model for it" };
  const skipped = await allow(look, model ? costOfCalls(model, look.calls, tokensOfLook) : free, model);
  if (skipped) return { skipped };
  try {
    return { found: await look.run(context, model) };
  } catch (thrown) {
    say(`${look.question} ${asProxyError(thrown).message}`);
    return { skipped: "no answer" };
  }
}

const free: Costs = { cost: {}, cost_at_least: false };

/** Free looks are taken. A person answers for each other one; where nobody can, they are taken as long as the budget lasts. */
function allowance({ yes, budget }: LookLimits): Allow {
  const isAsked = atTerminal() && !yes;
  const interruption = isAsked ? interrupted() : undefined;
  let spent = free;
  return async ({ question, calls }, cost, model) => {
    if (interruption?.aborted) return "declined";
    if (calls === 0) return undefined;
    const price = isUnknown(cost) ? "It is not known what that costs" : `It costs ${upTo(cost)}`;
    say(`${question}${model ? ` (${plural(calls, "call")} to ${model.id})` : ""} ${price}.`);
    if (interruption) return (await confirm("Look?", false, interruption)) ? undefined : "declined";
    const next = addedCost([spent, cost]);
    if (
      !yes ||
      budget === undefined ||
      isUnknown(cost) ||
      knownIn(next.cost).some(([, amount]) => amount > budget * 1e9)
    )
      return "not within the budget";
    spent = next;
    return undefined;
  };
}
