/** The view of an account in the APIs, the pages and the command line: its state and its remaining quota. */
import { asProxyError } from "../../lib/errors";
import type { Account } from "./account";
import { endOf, reasonOf } from "./account-state";
import type { Quota } from "./quota";

/** The quota as GitHub reports it now, or as last known with the reason why GitHub could not be asked. */
export interface QuotaReading {
  quota: Quota | undefined;
  error: string | null;
}

/** Never rejects. */
export const latestQuota = (account: Account): Promise<QuotaReading> =>
  account.quota().then(
    (quota) => ({ quota, error: null }),
    (thrown) => ({ quota: account.knownQuota, error: asProxyError(thrown).message }),
  );

/** An unknown value is null, never 0; times are Unix ms. Both APIs send `common` as it is. */
export function viewAccount(account: Account, { quota, error }: QuotaReading) {
  const { state } = account;
  const { name } = state;
  return {
    plan: quota?.plan ?? null,
    remaining: {
      entitlement: quota?.entitlement ?? null,
      remaining: quota?.isEmpty && !quota.overage ? Math.min(0, quota.remaining ?? 0) : (quota?.remaining ?? null),
      unlimited: (quota?.unlimited ?? false) && !quota?.isEmpty,
      failed: name === "failed",
    },
    /** When the state ends by itself; null if it does not. */
    until: endOf(state) ?? null,
    /** Models that cool down while the account serves others. */
    limitedModels: account.limitedModels,
    resetAt: quota?.resetAt ?? null,
    updatedAt: quota?.at ?? null,
    common: {
      state: name,
      reason: reasonOf(state) ?? null,
      unit: quota?.unit ?? "unknown",
      overage: quota?.overage ?? false,
      overage_count: quota?.overageCount ?? null,
      stale: error !== null || (quota?.stale ?? false),
      quota_error: error,
    },
  };
}
