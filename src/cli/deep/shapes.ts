/**
 * The report of `dragoman doctor --deep --report`: what each look has found about the upstream of today, as names, codes and
 * counts. Another machine compares it with what its version assumes.
 */
import { z } from "zod";
import { parseConfig } from "../../config/schema";
import { asProxyError } from "../../errors";
import { plural, utcDay } from "../../format";
import { isObject, parseJson } from "../../json";
import { lazy } from "../../lazy";
import { type Findings, type LookName, lookNames } from "../../upstream/changes/assumptions";
import { openCopilot } from "../../upstream/copilot/copilot";
import { type Model, readModel } from "../../upstream/models/model";
import { type Cost, costOf } from "../../upstream/models/price";
import type { CheckContext } from "../checks/check";
import { writeReportFile } from "../report";
import { atTerminal, confirm, interrupted, say } from "../terminal";
import { UsageError } from "../usage-error";
import { askerOf, type Seen } from "./ask";
import { firstAccount } from "./deep";
import { type DeepLook, deepLooks, type LookContext, tokensOfLook } from "./looks";
import { costInWords } from "./plan";

export interface LookLimits {
  /** Do not ask. */
  yes: boolean;
  /** AI credits, and premium requests, that looks may cost if nobody is asked. Without it, only free ones are taken. */
  budget?: number;
  /** Milliseconds between two model lists; 2 s. */
  pauseMs?: number;
}

/** A report begins with this, so that another file is recognized. */
const format = "dragoman-shapes-1";

const skips = ["declined", "no model for it", "not within the budget", "no answer"] as const;
type Skip = (typeof skips)[number];

const short = () => z.string().max(300);
const shapesSchema = lazy(() =>
  z.object({
    format: z.literal(format),
    dragoman: short(),
    day: short(),
    looks: z.partialRecord(
      z.enum(lookNames),
      z.union([
        z.object({ skipped: z.enum(skips) }),
        z.object({
          found: z.record(short(), z.union([short(), z.number(), z.boolean(), z.null(), z.array(short()).max(500)])),
        }),
      ]),
    ),
  }),
);
export type Shapes = z.output<ReturnType<typeof shapesSchema>>;

/** Takes one look after the other, each with its own yes. @throws UsageError if there is no account; ProxyError without a list */
export async function takeLooks(context: CheckContext, limits: LookLimits): Promise<Shapes> {
  let user: unknown;
  const account = firstAccount(context, (where, answer) => {
    if (where === "user") user = answer;
  });
  if (!account) throw new UsageError("No GitHub account is signed in here: run `dragoman auth`.");
  const copilot = openCopilot({ current: context.config ?? parseConfig({}) }, context.version);
  const seen: Seen[] = [];
  const ask = askerOf(copilot, account, (one) => seen.push(one));
  const { json } = await ask("/models");
  const items = isObject(json) && Array.isArray(json.data) ? json.data.filter(isObject) : [];
  await account.quota().catch(() => {}); // the report says that nothing is known of it
  const models = items.flatMap((item) => readModel(item) ?? []);
  const pauseMs = limits.pauseMs ?? 2_000;
  const looks: Shapes["looks"] = {};
  const allow = allowance(limits);
  const ofLooks: LookContext = { account, items, models, user, ask, pauseMs, seen };
  for (const look of deepLooks) looks[look.name] = await take(look, ofLooks, allow);
  return { format, dragoman: context.version, day: utcDay(Date.now()), looks };
}

type Allow = (look: DeepLook, cost: Cost, model: Model | undefined) => Promise<Skip | undefined>;

async function take(
  look: DeepLook,
  context: LookContext,
  allow: Allow,
): Promise<NonNullable<Shapes["looks"][LookName]>> {
  const model = look.model?.(context);
  if (look.model && !model) return { skipped: "no model for it" };
  const skipped = await allow(look, costOfLook(look, model), model);
  if (skipped) return { skipped };
  try {
    return { found: plain(await look.run(context, model)) };
  } catch (thrown) {
    say(`${look.question} ${asProxyError(thrown).message}`);
    return { skipped: "no answer" };
  }
}

const plain = (found: Findings) =>
  Object.fromEntries(
    Object.entries(found).map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]),
  ) as Record<string, string | number | boolean | null | string[]>;

function costOfLook({ calls }: DeepLook, model: Model | undefined): Cost {
  if (calls === 0 || !model) return { nanoCredits: 0, premiumUnits: 0 };
  const { nanoCredits, premiumUnits } = costOf(model.price, tokensOfLook, true);
  const times = (amount: number | null) => (amount === null ? null : amount * calls);
  return { nanoCredits: times(nanoCredits), premiumUnits: times(premiumUnits) };
}

/** A person answers for each look; where nobody can, free ones are taken, and others as long as the budget lasts. */
function allowance({ yes, budget }: LookLimits): Allow {
  const isAsked = atTerminal() && !yes;
  const spent = { credits: 0, premium: 0 };
  return async ({ question, calls }, cost, model) => {
    const isUnknown = cost.nanoCredits === null && cost.premiumUnits === null;
    const price = isUnknown ? "It is not known what that costs" : `It costs ${costInWords(cost)}`;
    const asked = model && calls > 0 ? ` (${plural(calls, "call")} to ${model.id})` : "";
    say(`${question}${asked} ${price}.`);
    if (isAsked) return (await confirm("Look?", calls === 0, interrupted())) ? undefined : "declined";
    if (calls === 0) return undefined;
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

/** Shows the report before it is saved. @returns False if the person declines. @throws UsageError if there is a file of that name */
export async function saveShapes(path: string, shapes: Shapes, yes: boolean): Promise<boolean> {
  const text = `${JSON.stringify(shapes, null, 2)}\n`;
  say("This is the report: names, codes and counts.", text);
  if (atTerminal() && !yes && !(await confirm(`Save it as ${path}?`, true, interrupted()))) return false;
  writeReportFile(path, text);
  say(`It is in ${path}. Send it to the project's issues: it settles for everybody what is not known yet.`);
  return true;
}

/** @throws UsageError if the text is no report. */
export function readShapes(text: string, path: string): Shapes {
  const read = shapesSchema().safeParse(parseJson(text));
  if (read.success) return read.data;
  throw new UsageError(`${path} is no report of \`dragoman doctor --deep --report\`, or one of another version.`);
}
