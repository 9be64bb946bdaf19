/**
 * What is left of an account's quota, from three spellings: the quota endpoint, response headers, stream events.
 * What nobody said is null, never 0. Two billing units exist; their numbers are never added together.
 */
import { z } from "zod";

export interface Quota {
  /** Premium requests; AI credits (billing by tokens); chat messages (free plan); or nobody said. */
  unit: "premium" | "credits" | "chat" | "unknown";
  /** GitHub's word: `free`, `individual`, `individual_pro`, `business`, `enterprise`. */
  plan: string | null;
  /** As GitHub says it: of a plan that is not counted these are mere placeholders, see {@link isCounted}. */
  entitlement: number | null;
  /** May be negative: GitHub counts on after the end. */
  remaining: number | null;
  unlimited: boolean;
  /** More than the entitlement may be used, and is paid for. */
  overage: boolean;
  overageCount: number;
  /** ms timestamp */
  resetAt: number | null;
  exhausted: boolean;
  /** As the quota endpoint sent them. */
  snapshots: Record<string, unknown>;
  /** ms timestamp of the newest of these numbers. */
  at: number;
  /** The endpoint could not be asked: these are the last known numbers. */
  stale?: boolean;
}

/** The answer of the quota endpoint, in any of its known shapes. */
export function readQuota(answer: unknown, now: number): Quota {
  const told = answerSchema.parse(answer);
  const snapshots = told.quota_snapshots;
  const premium = readSnapshot(snapshots.premium_interactions ?? snapshots.premium_models);
  const chat = readSnapshot(snapshots.chat) ?? legacyChat(told);
  const tokenBilled = Boolean(told.token_based_billing) || premium?.tokenBilled;
  const resetAt = dateOf(told.quota_reset_date_utc ?? told.quota_reset_date ?? told.limited_user_reset_date);
  const rest = { plan: told.copilot_plan, snapshots, resetAt, at: now };

  // The free plan without premium requests is measured by its chat messages.
  const byChat = chat && !chat.unlimited && !(premium && (premium.entitlement || premium.unlimited));
  if (byChat && (told.copilot_plan === "free" || !premium)) return weigh(chat, "chat", rest);
  if (!premium) return weigh(nothing, "unknown", rest);
  return weigh(premium, tokenBilled ? "credits" : "premium", rest);
}

/** What the `x-quota-snapshot-*` headers of a model's answer change; undefined when they say nothing. */
export function learnFromHeaders(known: Quota | undefined, headers: Headers, now: number): Quota | undefined {
  const serialized = (name: string) => {
    const value = headers.get(`x-quota-snapshot-${name}`);
    return value === null ? undefined : Object.fromEntries(new URLSearchParams(value));
  };
  // A query string, e.g. `ent=300&ov=0.0&ovPerm=false&rem=72.4&rst=2026-08-01T00%3A00%3A00Z`; `rem` is a percentage.
  return learn(known, now, (name) => {
    const { ent, rem, ov, ovPerm, rst } = serialized(name) ?? {};
    return ent === undefined
      ? undefined
      : {
          entitlement: ent,
          percent_remaining: rem,
          overage_count: ov,
          overage_permitted: ovPerm === "true",
          reset_date: rst,
        };
  });
}

/** What `copilot_quota_snapshots` of a responses stream changes; undefined when it says nothing. */
export function learnFromStream(known: Quota | undefined, snapshots: unknown, now: number): Quota | undefined {
  const read = z.record(z.string(), z.unknown()).safeParse(snapshots);
  return read.success ? learn(known, now, (name) => read.data[name]) : undefined;
}

function learn(known: Quota | undefined, now: number, find: (name: string) => unknown): Quota | undefined {
  const names = known?.unit === "chat" ? ["chat"] : ["premium_models", "premium_interactions"];
  const reading = names
    .map(find)
    .map((snapshot) => (snapshot === undefined ? undefined : readSnapshot(snapshot)))
    .find(Boolean);
  if (!reading) return undefined;
  // These two spell "unlimited" as -1: what the quota endpoint says of such a plan stays.
  const numbers = reading.unlimited && known?.unlimited ? known : reading;
  const { entitlement, remaining } = numbers;
  // Neither spelling says what it counts.
  return weigh({ ...reading, entitlement, remaining }, known?.unit ?? "unknown", {
    plan: known?.plan ?? null,
    snapshots: known?.snapshots ?? {},
    resetAt: reading.resetAt ?? known?.resetAt ?? null,
    at: now,
  });
}

interface Reading {
  entitlement: number | null;
  remaining: number | null;
  unlimited: boolean;
  overage: boolean;
  overageCount: number;
  tokenBilled: boolean;
  resetAt: number | null;
}

const nothing: Reading = {
  entitlement: null,
  remaining: null,
  unlimited: false,
  overage: false,
  overageCount: 0,
  tokenBilled: false,
  resetAt: null,
};

function readSnapshot(snapshot: unknown): Reading | undefined {
  const read = snapshotSchema.safeParse(snapshot);
  if (!read.success) return undefined;
  const { entitlement: stated, percent_remaining, quota_remaining, remaining, ...told } = read.data;
  const unlimited = told.unlimited || stated === -1;
  // The quota endpoint says 0 of what is unlimited, the other spellings -1.
  const entitlement = stated === -1 ? 0 : stated;
  const byPercent =
    entitlement !== null && percent_remaining !== null ? Math.round(entitlement * percent_remaining) / 100 : null;
  return {
    entitlement,
    remaining: quota_remaining ?? remaining ?? byPercent,
    unlimited,
    overage: told.overage_permitted,
    overageCount: told.overage_count ?? 0,
    tokenBilled: told.token_based_billing === true,
    resetAt: dateOf(told.reset_date),
  };
}

/** The old free plan has no snapshots: totals and remainders stand apart. */
function legacyChat({ monthly_quotas, limited_user_quotas }: z.infer<typeof answerSchema>): Reading | undefined {
  if (limited_user_quotas.chat === null) return undefined;
  return { ...nothing, entitlement: monthly_quotas.chat, remaining: limited_user_quotas.chat };
}

function weigh(
  reading: Reading,
  unit: Quota["unit"],
  rest: Pick<Quota, "plan" | "snapshots" | "resetAt" | "at">,
): Quota {
  const { entitlement, remaining, unlimited, overage, overageCount } = reading;
  const exhausted = isCounted({ unit, entitlement, unlimited }) && !overage && remaining !== null && remaining <= 0;
  return { ...rest, unit, entitlement, remaining, unlimited, overage, overageCount, exhausted };
}

/**
 * Whether the numbers are a count of something. Under token billing an entitlement of 0 stands for "not counted here", with
 * percent 100 beside it; of what is unlimited they are placeholders too.
 */
export const isCounted = ({
  unit,
  entitlement,
  unlimited,
}: Pick<Quota, "unit" | "entitlement" | "unlimited">): boolean =>
  !unlimited && (Boolean(entitlement) || unit === "premium" || unit === "chat");

function dateOf(text: string | null | undefined): number | null {
  const time = Date.parse(text ?? "");
  return Number.isNaN(time) ? null : time;
}

/** A number, also as text (streams say `"300"`, headers only text). What no account could have is unknown. */
const amount = z
  .union([
    z.number(),
    z
      .string()
      .regex(/^-?\d+(?:\.\d+)?$/)
      .transform(Number),
  ])
  .pipe(z.number().min(-1e15).max(1e15))
  .nullable()
  .catch(null)
  .default(null);
const flag = z.boolean().catch(false).default(false);
const text = z.string().nullable().catch(null).default(null);
const chatOnly = z.object({ chat: amount }).catch({ chat: null }).default({ chat: null });

const snapshotSchema = z.object({
  entitlement: amount,
  remaining: amount,
  quota_remaining: amount,
  percent_remaining: amount,
  unlimited: flag,
  overage_permitted: flag,
  overage_count: amount,
  token_based_billing: z.unknown().optional(),
  reset_date: text,
});

const answerSchema = z.object({
  copilot_plan: text,
  token_based_billing: z.unknown().optional(),
  quota_snapshots: z.record(z.string(), z.unknown()).catch({}).default({}),
  quota_reset_date: text,
  quota_reset_date_utc: text,
  limited_user_quotas: chatOnly,
  monthly_quotas: chatOnly,
  limited_user_reset_date: text,
});
