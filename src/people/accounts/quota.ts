/**
 * Reads an account's quota from its two formats: the quota endpoint and response headers.
 * An unknown number is null, never 0. Two billing units exist; their numbers are never added together.
 */
import { z } from "zod";
import { entryOf, isObject } from "../../lib/json";
import { lazy } from "../../lib/lazy";

export interface Quota {
  /** Premium requests; AI credits (billing by tokens); chat messages (free plan); or unknown. */
  unit: "premium" | "credits" | "chat" | "unknown";
  /** GitHub's word: `free`, `individual`, `individual_pro`, `individual_max`, `business`, `enterprise`; or `student`, `organization`. */
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
  const snapshot = snapshots.premium_interactions ?? snapshots.premium_models;
  const premium = readReport(snapshot);
  const chat = readReport(snapshots.chat) ?? legacyChat(fields);
  const isByTokens = Boolean(fields.token_based_billing) || isTokenBilled(snapshot);
  const resetAt = dateOf(fields.quota_reset_date_utc ?? fields.quota_reset_date ?? fields.limited_user_reset_date);
  const plan = planOf(fields);
  const common = { plan, snapshots, resetAt, at: now };

  // The free plan without premium requests is measured by its chat messages.
  const byChat = chat && !chat.unlimited && !(premium && (premium.entitlement || premium.unlimited));
  if (byChat && (plan === "free" || !premium)) return toQuota(chat, { ...common, unit: "chat" });
  if (!premium) return toQuota(emptyReading, { ...common, unit: isByTokens ? "credits" : "unknown" });
  return toQuota(premium, { ...common, unit: isByTokens ? "credits" : "premium" });
}

/** The name under which the headers of an answer that hold a quota are looked at as a whole. */
export const snapshotHeaders = "x-quota-snapshot-*";

/**
 * The quota after the `x-quota-snapshot-*` headers of a model's answer; undefined if there are none.
 * @param inspect Called with the quota as it was sent; undefined if there is none.
 */
export function learnFromHeaders(
  known: Quota | undefined,
  headers: Headers,
  now: number,
  inspect?: (sent: unknown) => void,
): Quota | undefined {
  let isThere = false;
  for (const name of namesFor(known)) {
    const value = headers.get(`x-quota-snapshot-${name}`);
    if (value === null) continue;
    isThere = true;
    const fields = Object.fromEntries(new URLSearchParams(value));
    inspect?.(fields);
    if (fields.ent !== undefined) return withReading(known, readHeader(fields), now);
  }
  if (!isThere) inspect?.(undefined);
  return undefined;
}

/** Of the quotas of an answer the first of these counts. */
const namesFor = (known: Quota | undefined): readonly string[] => (known?.unit === "chat" ? chatNames : premiumNames);

const chatNames = ["chat"];
const premiumNames = ["premium_models", "premium_interactions"];

/** `copilot_plan` of a student is `individual`, as it is of Copilot Pro: only the SKU tells them apart (seen 2026-09). */
const planOf = ({ access_type_sku, copilot_plan }: { access_type_sku: string | null; copilot_plan: string | null }) =>
  copilot_plan === null || copilot_plan === "individual"
    ? (entryOf(plansBySku, access_type_sku ?? "") ?? copilot_plan)
    : copilot_plan;

const plansBySku: Record<string, string> = { free_limited_copilot: "free", free_educational_quota: "student" };

/** What is known after a model's answer, which states neither the plan nor the unit. */
function withReading(known: Quota | undefined, reading: Reading, now: number): Quota {
  // Headers send -1 for "unlimited": the numbers of the quota endpoint stay.
  const staysKnown = (reading.unlimited && known?.unlimited) || isRoundingOf(reading, known);
  const { entitlement, remaining } = staysKnown ? known! : reading;
  // Only the quota endpoint is sure to say so, and to take it back.
  const hasQuota = reading.hasQuota ?? (known?.isEmpty ? false : null);
  const { unit, plan, snapshots, resetAt } = known ?? nothingKnown;
  const common = { unit, plan, snapshots, resetAt: reading.resetAt ?? resetAt, at: now };
  return toQuota({ ...reading, entitlement, remaining, hasQuota }, common);
}

const nothingKnown = { unit: "unknown", plan: null, snapshots: {}, resetAt: null } as const;

/** Whether a number that was rounded, or cut, is the one that is known already. */
function isRoundingOf({ entitlement, remaining, step }: Reading, known: Quota | undefined): boolean {
  if (!known || known.remaining === null || remaining === null || known.entitlement !== entitlement) return false;
  return known.remaining >= remaining - step && known.remaining < remaining + 2 * step;
}

interface Reading
  extends Pick<Quota, "entitlement" | "remaining" | "unlimited" | "overage" | "overageCount" | "resetAt"> {
  /** Half of what `remaining` is rounded to; 0 if it is exact. */
  step: number;
  /** Null if it is not stated. */
  hasQuota: boolean | null;
}

const emptyReading: Reading = {
  entitlement: null,
  remaining: null,
  step: 0,
  hasQuota: null,
  unlimited: false,
  overage: false,
  overageCount: null,
  resetAt: null,
};

/**
 * A snapshot of the quota endpoint, which states whether it is unlimited, and with token billing whether anything is left.
 * Without that, the numbers of an unlimited seat cannot be told from a quota that is used up, nor an empty pool from a full one.
 */
function readReport(snapshot: unknown): Reading | undefined {
  if (!isObject(snapshot)) return undefined;
  const reading = readSnapshot(snapshot);
  const { entitlement, unlimited, hasQuota } = reading;
  const isUnlimitedStated = unlimited || typeof snapshot.unlimited === "boolean";
  const isUnknown = isUnlimitedStated ? unlimited && isTokenBilled(snapshot) && hasQuota === null : !entitlement;
  return isUnknown ? { ...reading, unlimited: false, entitlement: null, remaining: null } : reading;
}

const isTokenBilled = (snapshot: unknown): boolean =>
  isObject(snapshot) && (snapshot.token_based_billing === true || snapshot.credits_used != null);

/** A snapshot of the quota endpoint. */
function readSnapshot(snapshot: Record<string, unknown>): Reading {
  const { quota_remaining, remaining, total_remaining, percent_remaining, has_quota } = snapshot;
  const size = sizeOf(snapshot.entitlement, snapshot.unlimited === true);
  const exact = amountOf(quota_remaining) ?? amountOf(remaining);
  return {
    ...size,
    ...(exact === null ? roundedOf(size, total_remaining, percent_remaining) : { remaining: exact, step: 0 }),
    hasQuota: typeof has_quota === "boolean" ? has_quota : null,
    overage: snapshot.overage_permitted === true,
    overageCount: amountOf(snapshot.overage_count),
    resetAt: dateOf(snapshot.reset_date),
  };
}

/**
 * A query string, e.g. `ent=4000&ov=0.0&ovPerm=true&rem=95.7&rst=2026-07-01T00%3A00%3A00Z&totRem=3830.1`: `rem` is a
 * percentage, `totRem` the same as an amount (seen in recordings of 2026-06).
 */
function readHeader({ ent, rem, totRem, ov, ovPerm, rst, hasQuota, has_quota = hasQuota }: HeaderFields): Reading {
  const size = sizeOf(ent, false);
  return {
    ...size,
    ...roundedOf(size, totRem, rem),
    hasQuota: has_quota === undefined ? null : has_quota !== "false",
    overage: ovPerm === "true",
    overageCount: amountOf(ov),
    resetAt: dateOf(rst),
  };
}

type HeaderFields = Record<string, string | undefined>;

/** For an unlimited plan the quota endpoint says so and sends 0, headers send -1. */
function sizeOf(stated: unknown, isUnlimited: boolean): Pick<Reading, "entitlement" | "unlimited"> {
  const entitlement = amountOf(stated);
  return entitlement === -1 ? { entitlement: 0, unlimited: true } : { entitlement, unlimited: isUnlimited };
}

/** What is left, as it was rounded: to a digit of the amount, or of the percentage. */
function roundedOf(
  { entitlement, unlimited }: Pick<Reading, "entitlement" | "unlimited">,
  amount: unknown,
  percentage: unknown,
): Pick<Reading, "remaining" | "step"> {
  const total = amountOf(amount);
  // GitHub sends -1 for "unlimited".
  if (total !== null && !(total === -1 && unlimited)) return { remaining: total, step: digitOf(total) / 2 };
  const percent = amountOf(percentage);
  if (entitlement === null || percent === null) return { remaining: null, step: 0 };
  const remaining = Math.round(((entitlement * percent) / 100) * 100) / 100;
  return { remaining, step: (digitOf(percent) * entitlement) / 200 };
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
export const isUsedUp = (quota: Counted & Pick<Quota, "remaining" | "isEmpty">): boolean =>
  quota.isEmpty === true || (isCounted(quota) && quota.remaining !== null && quota.remaining <= 0);

function toQuota(
  { step: _, hasQuota, ...reading }: Reading,
  common: Pick<Quota, "unit" | "plan" | "snapshots" | "resetAt" | "at">,
): Quota {
  const quota = { ...reading, ...common, isEmpty: hasQuota === false || undefined };
  return { ...quota, exhausted: !quota.overage && isUsedUp(quota) };
}

type Counted = Pick<Quota, "unit" | "entitlement" | "unlimited">;

/**
 * Whether the numbers count something. With token billing, an entitlement of 0 (and 100 percent) means "not counted here";
 * for an unlimited plan the numbers are placeholders too.
 */
export const isCounted = ({ unit, entitlement, unlimited }: Counted): boolean =>
  !unlimited && (Boolean(entitlement) || unit === "premium" || unit === "chat");

/** A number, or one as text, as headers send it. An impossible number is unknown. */
function amountOf(value: unknown): number | null {
  const amount = typeof value === "string" && /^-?\d+(?:\.\d+)?$/.test(value) ? Number(value) : value;
  return typeof amount === "number" && Math.abs(amount) <= 1e15 ? amount : null;
}

function dateOf(text: unknown): number | null {
  const time = typeof text === "string" ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

const amount = () => z.unknown().transform(amountOf);
const text = () => z.string().nullable().catch(null).default(null);
const chatOnly = () => z.object({ chat: amount() }).catch({ chat: null }).default({ chat: null });

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
