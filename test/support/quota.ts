/** A quota as GitHub reports it. */
import type { Quota } from "../../src/people/accounts/quota";

const counted = { entitlement: 300, remaining: 200, percent_remaining: 66.6, unlimited: false, overage_count: 0 };
export const someQuota: Quota = {
  plan: "business",
  unit: "premium",
  entitlement: 300,
  remaining: 200,
  unlimited: false,
  overage: false,
  overageCount: 0,
  exhausted: false,
  resetAt: null,
  at: 0,
  snapshots: { premium_interactions: counted, chat: counted, completions: counted },
};
