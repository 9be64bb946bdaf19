/**
 * Reads an account's quota from its three formats: the quota endpoint, response headers, stream events.
 * An unknown number is null, never 0. Two billing units exist; their numbers are never added together.
 */
import { z } from "zod";
import { entryOf } from "../json";
import { lazy } from "../lazy";

export interface Quota {
  /** Premium requests; AI credits (billing by tokens); chat messages (free plan); or unknown. */
  unit: "premium" | "credits" | "chat" | "unknown";
  /** GitHub's word: `free`, `individual`, `individual_pro`, `individual_max`, `business`, `enterprise`; or `student`. */
  plan: string | null;
  /** As GitHub states it: a placeholder if the plan is not counted, see {@link isCounted}. */
  entitlement: number | null;
  /** May be negative: GitHub goes on counting below 0. */
  remaining: number | null;
  unlimited: boolean;
  /** GitHub says that nothing is left, whatever the numbers: those of a seat that draws on a pool are placeholders. */
  isEmpty?: true;
  /** More than the entitlement may be used, and is paid for. */
  overage: boolean;
  /** Null if it is not stated. */
  overageCount: number | null;
  /** ms timestamp */
  resetAt: number | null;
  exhausted: boolean;
  /** As sent by the quota endpoint. */
  snapshots: Record<string, unknown>;
  /** ms timestamp of the latest update. */
  at: number;
  /** The quota endpoint could not be reached: these are the last known numbers. */
  stale?: boolean;
}

/** Reads the answer of the quota endpoint, in any of its known shapes. */
export function readQuota(answer: unknown, now: number): Quota {
  const fields = answerSchema().parse(answer);
  const snapshots = fields.quota_snapshots;
  const premium = readReport(snapshots.premium_interactions ?? snapshots.premium_models);
  const chat = readReport(snapshots.chat) ?? legacyChat(fields);
  const tokenBilled = Boolean(fields.token_based_billing) || premium?.tokenBilled;
  const resetAt = dateOf(fields.quota_reset_date_utc ?? fields.quota_reset_date ?? fields.limited_user_reset_date);
  const plan = planOf(fields);
  const common = { plan, snapshots, resetAt, at: now };

  // The free plan without premium requests is measured by its chat messages.
  const byChat = chat && !chat.unlimited && !(premium && (premium.entitlement || premium.unlimited));
  if (byChat && (plan === "free" || !premium)) return toQuota(chat, "chat", common);
  if (!premium) return toQuota(emptyReading, "unknown", common);
  return toQuota(premium, tokenBilled ? "credits" : "premium", common);
}

/** The two forms in which models' answers state a quota. */
export type QuotaForm = "quota headers" | "quota snapshots";
/** Is called with the quota of a model's answer, as it was sent. */
type Inspect = (form: QuotaForm, snapshot: unknown) => void;

/** The quota after the `x-quota-snapshot-*` headers of a model's answer; undefined if there are none. */
export function learnFromHeaders(
  known: Quota | undefined,
  headers: Headers,
  now: number,
  inspect?: Inspect,
): Quota | undefined {
  const fieldsOf = (name: string) => {
    const value = headers.get(`x-quota-snapshot-${name}`);
    return value === null ? undefined : Object.fromEntries(new URLSearchParams(value));
  };
  // A query string, e.g. `ent=4000&ov=0.0&ovPerm=true&rem=95.7&rst=2026-07-01T00%3A00%3A00Z&totRem=3830.1`: `rem` is a
  // percentage, `totRem` the same as an amount (seen in recordings of 2026-06).
  return learn(known, now, (name) => {
    const fields = fieldsOf(name);
    if (fields) inspect?.("quota headers", fields);
    const { ent, rem, totRem, ov, ovPerm, rst, hasQuota, has_quota = hasQuota } = fields ?? {};
    return ent === undefined
      ? undefined
      : {
          entitlement: ent,
          percent_remaining: rem,
          total_remaining: totRem,
          has_quota: has_quota === undefined ? undefined : has_quota !== "false",
          overage_count: ov,
          overage_permitted: ovPerm === "true",
          reset_date: rst,
        };
  });
}

/** The quota after `copilot_quota_snapshots` of a responses stream; undefined if there are none. */
export function learnFromStream(
  known: Quota | undefined,
  snapshots: unknown,
  now: number,
  inspect?: Inspect,
): Quota | undefined {
  const read = z.record(z.string(), z.unknown()).safeParse(snapshots);
  if (!read.success) return undefined;
  return learn(known, now, (name) => {
    const snapshot = read.data[name];
    if (snapshot !== undefined) inspect?.("quota snapshots", snapshot);
    return snapshot;
  });
}

/** `copilot_plan` of a student is `individual`, as it is of Copilot Pro: only the SKU tells them apart (seen 2026-09). */
const planOf = ({ access_type_sku, copilot_plan }: { access_type_sku: string | null; copilot_plan: string | null }) =>
  copilot_plan === null || copilot_plan === "individual"
    ? (entryOf(plansBySku, access_type_sku ?? "") ?? copilot_plan)
    : copilot_plan;

const plansBySku: Record<string, string> = { free_limited_copilot: "free", free_educational_quota: "student" };

function learn(known: Quota | undefined, now: number, find: (name: string) => unknown): Quota | undefined {
  const names = known?.unit === "chat" ? ["chat"] : ["premium_models", "premium_interactions"];
  const reading = names
    .map(find)
    .map((snapshot) => (snapshot === undefined ? undefined : readSnapshot(snapshot)))
    .find(Boolean);
  if (!reading) return undefined;
  // Headers and streams send -1 for "unlimited": the numbers of the quota endpoint stay.
  const numbers = reading.unlimited && known?.unlimited ? known : reading;
  const { entitlement } = numbers;
  const remaining = isRoundingOf(reading, known) ? known!.remaining : numbers.remaining;
  // Only the quota endpoint is sure to say so, and to take it back.
  const hasQuota = reading.hasQuota ?? (known?.isEmpty ? false : null);
  // Neither format states the unit.
  return toQuota({ ...reading, entitlement, remaining, hasQuota }, known?.unit ?? "unknown", {
    plan: known?.plan ?? null,
    snapshots: known?.snapshots ?? {},
    resetAt: reading.resetAt ?? known?.resetAt ?? null,
    at: now,
  });
}

/** Whether a number that was rounded, or cut, is the one that is known already. */
function isRoundingOf({ entitlement, remaining, step }: Reading, known: Quota | undefined): boolean {
  if (!known || known.remaining === null || remaining === null || known.entitlement !== entitlement) return false;
  return known.remaining >= remaining - step && known.remaining < remaining + 2 * step;
}

interface Reading {
  entitlement: number | null;
  remaining: number | null;
  /** Half of what `remaining` is rounded to; 0 if it is exact. */
  step: number;
  /** Null if it is not stated. */
  hasQuota: boolean | null;
  unlimited: boolean;
  overage: boolean;
  overageCount: number | null;
  tokenBilled: boolean;
  resetAt: number | null;
}

const emptyReading: Reading = {
  entitlement: null,
  remaining: null,
  step: 0,
  hasQuota: null,
  unlimited: false,
  overage: false,
  overageCount: null,
  tokenBilled: false,
  resetAt: null,
};

/**
 * A snapshot of the quota endpoint, which states whether it is unlimited, and with token billing whether anything is left.
 * Without that, the numbers of an unlimited seat cannot be told from a quota that is used up, nor an empty pool from a full one.
 */
function readReport(snapshot: unknown): Reading | undefined {
  const reading = readSnapshot(snapshot);
  if (!reading) return undefined;
  const { isUnlimitedStated, entitlement, unlimited, tokenBilled, hasQuota } = reading;
  const isUnknown = isUnlimitedStated ? unlimited && tokenBilled && hasQuota === null : !entitlement;
  return isUnknown ? { ...reading, unlimited: false, entitlement: null, remaining: null } : reading;
}

function readSnapshot(snapshot: unknown): (Reading & { isUnlimitedStated: boolean }) | undefined {
  const read = snapshotSchema().safeParse(snapshot);
  if (!read.success) return undefined;
  const { entitlement: stated, percent_remaining, quota_remaining, remaining, total_remaining, ...flags } = read.data;
  const unlimited = flags.unlimited === true || stated === -1;
  // For an unlimited plan the quota endpoint sends 0, the other formats -1.
  const entitlement = stated === -1 ? 0 : stated;
  // GitHub sends -1 for "unlimited".
  const total = total_remaining === -1 && unlimited ? null : total_remaining;
  const exact = quota_remaining ?? remaining;
  const byPercent = entitlement !== null && percent_remaining !== null ? (entitlement * percent_remaining) / 100 : null;
  const rounded = total ?? (byPercent === null ? null : Math.round(byPercent * 100) / 100);
  const digit = total === null ? (digitOf(percent_remaining ?? 0) * (entitlement ?? 0)) / 100 : digitOf(total);
  return {
    entitlement,
    remaining: exact ?? rounded,
    step: exact === null ? digit / 2 : 0,
    hasQuota: flags.has_quota,
    unlimited,
    isUnlimitedStated: flags.unlimited !== null || stated === -1,
    overage: flags.overage_permitted,
    overageCount: flags.overage_count,
    tokenBilled: flags.token_based_billing === true || flags.credits_used != null,
    resetAt: dateOf(flags.reset_date),
  };
}

/** What the last digit of a number stands for; headers have one after the point, which may be a 0. */
const digitOf = (value: number): number => 10 ** -Math.max(1, (String(value).split(".")[1] ?? "").length);

/** The old free plan has no snapshots but separate fields for the total and the remainder. */
function legacyChat({
  monthly_quotas,
  limited_user_quotas,
}: z.infer<ReturnType<typeof answerSchema>>): Reading | undefined {
  if (limited_user_quotas.chat === null) return undefined;
  return { ...emptyReading, entitlement: monthly_quotas.chat, remaining: limited_user_quotas.chat };
}

/** Whether the included quota is used up, even if more is permitted as overage. */
export const isUsedUp = ({
  remaining,
  isEmpty,
  ...counted
}: Pick<Quota, "unit" | "entitlement" | "remaining" | "unlimited" | "isEmpty">): boolean =>
  isEmpty === true || (isCounted(counted) && remaining !== null && remaining <= 0);

function toQuota(
  reading: Reading,
  unit: Quota["unit"],
  common: Pick<Quota, "plan" | "snapshots" | "resetAt" | "at">,
): Quota {
  const { entitlement, remaining, unlimited, overage, overageCount } = reading;
  const empty = reading.hasQuota === false ? ({ isEmpty: true } as const) : {};
  const exhausted = !overage && isUsedUp({ unit, entitlement, remaining, unlimited, ...empty });
  return { ...common, unit, entitlement, remaining, unlimited, ...empty, overage, overageCount, exhausted };
}

/**
 * Whether the numbers count something. With token billing, an entitlement of 0 (and 100 percent) means "not counted here";
 * for an unlimited plan the numbers are placeholders too.
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

/** A number, or one as text (streams send `"300"`, headers only text). An impossible number is unknown. */
const amount = () =>
  z
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
const flag = () => z.boolean().catch(false).default(false);
const text = () => z.string().nullable().catch(null).default(null);
const chatOnly = () => z.object({ chat: amount() }).catch({ chat: null }).default({ chat: null });

const snapshotSchema = lazy(() =>
  z.object({
    entitlement: amount(),
    remaining: amount(),
    quota_remaining: amount(),
    percent_remaining: amount(),
    total_remaining: amount(),
    has_quota: z.boolean().nullable().catch(null).default(null),
    unlimited: z.boolean().nullable().catch(null).default(null),
    overage_permitted: flag(),
    overage_count: amount(),
    token_based_billing: z.unknown().optional(),
    credits_used: z.unknown().optional(),
    reset_date: text(),
  }),
);

const answerSchema = lazy(() =>
  z.object({
    copilot_plan: text(),
    access_type_sku: text(),
    token_based_billing: z.unknown().optional(),
    quota_snapshots: z.record(z.string(), z.unknown()).catch({}).default({}),
    quota_reset_date: text(),
    quota_reset_date_utc: text(),
    limited_user_quotas: chatOnly(),
    monthly_quotas: chatOnly(),
    limited_user_reset_date: text(),
  }),
);
