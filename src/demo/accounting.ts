/** What a request costs, and the three places where the rest is reported: quota endpoint, response headers, stream snapshots. */
import { type Allowance, type DemoAccount, resetDate } from "./accounts";
import { type Model, pricesOf } from "./model";
import type { Usage } from "./parse-prompt";
import type { DemoState } from "./state";
import { type Json, refusal } from "./wire";

/**
 * Takes the price of one request from the account, or refuses the request with 402.
 * Generation A: a person's request costs the model's premium units, an agent's none. Without the header it counts as a person's.
 * The others: nothing is taken here; `chargeTokens` charges for the tokens when they are known.
 */
export function chargeRequest(demo: DemoState, account: DemoAccount, model: Model, initiator: string | undefined) {
  const { quota } = account;
  const byPerson = initiator?.toLowerCase() !== "agent";
  const priced = demo.generation !== "A" || quota.tokenBilling;
  const units = byPerson && !priced ? model.units : 0;
  if (account.plan === "free" && byPerson) take(demo, quota.chat, 1, "free_quota_exceeded");
  if (units > 0) take(demo, quota.premium, units, "quota_exceeded");
  if (priced && model.prices.input > 0 && (quota.premium.entitlement > 0 || quota.premium.hasQuota === false))
    take(demo, quota.premium, 0, "quota_exceeded");
}

/** Charges one answer in credits, under token billing. */
export function chargeTokens(demo: DemoState, account: DemoAccount, model: Model, usage: Usage): void {
  if (!account.quota.tokenBilling) return;
  const credits = nanoCredits(model, usage) / 1e9;
  demo.charge({ login: account.login, at: demo.now(), model: model.name, credits });
}

function take(demo: DemoState, allowance: Allowance, units: number, code: string): void {
  if (allowance.unlimited && allowance.hasQuota !== false) return;
  if (allowance.remaining > 0) allowance.remaining -= units;
  else if (allowance.overagePermitted) allowance.overageCount += units;
  else
    throw refusal(
      402,
      code,
      "You have no quota",
      {},
      {
        "retry-after": String(Math.ceil((resetDate(demo.now()).getTime() - demo.now()) / 1000)),
      },
    );
}

/** `copilot_usage`, which accompanies the usage of every answer. 1e9 nano-AIU are one credit, which is 0.01 USD. */
export function copilotUsage(model: Model, usage: Usage): Json {
  const { input, output, cacheRead, cacheWrite = 0 } = pricesOf(model, usage.input);
  const details: [string, number, number][] = [
    ["input", usage.input - usage.cacheRead - usage.cacheWrite, input],
    ["output", usage.output, output],
    ["cache_read", usage.cacheRead, cacheRead],
    ["cache_write", usage.cacheWrite, cacheWrite],
  ];
  return {
    total_nano_aiu: nanoCredits(model, usage),
    token_details: details
      .filter(([, tokens]) => tokens > 0)
      .map(([token_type, token_count, cost_per_batch]) => ({
        token_type,
        token_count,
        batch_size: 1_000_000,
        cost_per_batch,
      })),
  };
}

function nanoCredits(model: Model, usage: Usage): number {
  const prices = pricesOf(model, usage.input);
  const fresh = usage.input - usage.cacheRead - usage.cacheWrite;
  const perMillion =
    fresh * prices.input +
    usage.output * prices.output +
    usage.cacheRead * prices.cacheRead +
    usage.cacheWrite * (prices.cacheWrite ?? 0);
  return perMillion * 1000;
}

/** `x-quota-snapshot-*`; `ent=-1` is unlimited. Business hosts call the premium one `premium_models`. */
export function quotaHeaders(demo: DemoState, account: DemoAccount): Record<string, string> {
  const { premium, chat, completions } = account.quota;
  const rst = `${resetDate(demo.now()).toISOString().slice(0, 19)}Z`;
  const format = (allowance: Allowance) =>
    new URLSearchParams({
      ent: String(entitlement(allowance)),
      ov: allowance.overageCount.toFixed(1),
      ovPerm: String(allowance.overagePermitted),
      rem: percent(account, allowance).toFixed(1),
      rst,
      ...(demo.generation !== "A" && { totRem: allowance.unlimited ? "-1" : allowance.remaining.toFixed(1) }),
    }).toString();
  return {
    "x-quota-snapshot-chat": format(chat),
    "x-quota-snapshot-completions": format(completions),
    [`x-quota-snapshot-${account.host === "business" ? "premium_models" : "premium_interactions"}`]: format(premium),
    ...(demo.generation !== "A" && {
      "x-usage-ratelimit-session": `rem=98.0&rst=${encodeURIComponent(rst)}`,
      "x-usage-ratelimit-weekly": `rem=91.5&rst=${encodeURIComponent(rst)}`,
    }),
  };
}

/** `copilot_quota_snapshots` of a responses stream, where the entitlement is a string. */
export function streamSnapshots(demo: DemoState, account: DemoAccount): Json {
  const format = (allowance: Allowance) => ({
    entitlement: String(entitlement(allowance)),
    percent_remaining: percent(account, allowance),
    overage_permitted: allowance.overagePermitted,
    overage_count: allowance.overageCount,
    reset_date: resetDate(demo.now()).toISOString(),
  });
  const { premium, chat, completions } = account.quota;
  return { chat: format(chat), completions: format(completions), premium_interactions: format(premium) };
}

/** The body of `GET /copilot_internal/user`. */
export function quotaReport(demo: DemoState, account: DemoAccount): Json {
  const { quota, host } = account;
  const reset = resetDate(demo.now()).toISOString();
  const business = account.plan === "business" || account.plan === "enterprise";
  const organizations = business ? ["demo-org"] : [];
  return {
    login: account.login,
    access_type_sku: account.sku,
    analytics_tracking_id: "demo",
    assigned_date: "2025-06-01T00:00:00Z",
    can_signup_for_limited: false,
    chat_enabled: true,
    copilot_plan: account.plan,
    organization_login_list: organizations,
    organization_list: organizations.map((login) => ({ login, name: "DEMO organisation" })),
    endpoints: { api: demo.urls[host], telemetry: "https://telemetry.invalid" },
    ...(quota.tokenBilling && { token_based_billing: true }),
    ...(quota.legacy
      ? {
          limited_user_quotas: { chat: quota.chat.remaining, completions: quota.completions.remaining },
          monthly_quotas: { chat: quota.chat.entitlement, completions: quota.completions.entitlement },
          limited_user_reset_date: reset.slice(0, 10),
        }
      : {
          quota_reset_date: reset.slice(0, 10),
          quota_reset_date_utc: reset,
          quota_snapshots: {
            chat: snapshot(demo, account, "chat"),
            completions: snapshot(demo, account, "completions"),
            premium_interactions: snapshot(demo, account, "premium"),
          },
        }),
  };
}

function snapshot(demo: DemoState, account: DemoAccount, name: "chat" | "completions" | "premium"): Json {
  const allowance = account.quota[name];
  return {
    quota_id: name === "premium" ? "premium_interactions" : name,
    entitlement: allowance.entitlement,
    remaining: Math.floor(allowance.remaining),
    quota_remaining: round(allowance.remaining),
    percent_remaining: percent(account, allowance),
    unlimited: allowance.unlimited,
    overage_count: allowance.overageCount,
    overage_permitted: allowance.overagePermitted,
    timestamp_utc: new Date(demo.now()).toISOString(),
    ...(allowance.creditsUsed !== undefined && {
      has_quota: allowance.hasQuota ?? true,
      token_based_billing: true,
      credits_used: round(allowance.creditsUsed),
    }),
  };
}

const entitlement = (allowance: Allowance) => (allowance.unlimited ? -1 : allowance.entitlement);

function percent({ quota }: DemoAccount, { unlimited, entitlement, remaining }: Allowance): number {
  if (unlimited || (entitlement === 0 && quota.tokenBilling)) return 100;
  return entitlement === 0 ? 0 : round((remaining / entitlement) * 100);
}

const round = (value: number) => Math.round(value * 1000) / 1000;
