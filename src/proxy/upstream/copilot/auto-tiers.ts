/** The tiers of Auto that an account has, as `GET /meta` lists them (opencode's plugin, code and test, 2026-11). */
import { isObject } from "../../../lib/json";
import type { AutoTier } from "./auto-model";

/** Whether an answer offers the tier. One without a list of tiers offers none. */
export function hasTier({ auto }: Record<string, unknown>, tier: AutoTier): boolean {
  const tiers = isObject(auto) && Array.isArray(auto.tiers) ? auto.tiers.filter(isObject) : [];
  const found = tiers.find(({ id, type }) => id === tier && type === "auto");
  return isObject(found?.status) && found.status.enabled === true;
}
