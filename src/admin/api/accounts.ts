/** The accounts in the admin API: state, remaining quota, and usage. */
import type { z } from "zod";
import { warningInWords, warningsOf } from "../../books/changes/warnings";
import type { Totals } from "../../books/history/history";
import { sum, sumKnown } from "../../lib/money";
import { withTimeLimit } from "../../lib/net/time-limit";
import type { Scope } from "../../parts/app";
import type { Account } from "../../people/accounts/account";
import { latestQuota, type QuotaReading, viewAccount } from "../../people/accounts/account-view";
import type { accountSchema, knownAccountSchema } from "./schemas";

export type AccountItem = z.infer<typeof accountSchema>;

type AccountStats = NonNullable<AccountItem["stats"]>;

/** @param since With statistics of each account since then (ms). */
export async function listAccounts(app: Scope, since?: number): Promise<AccountItem[]> {
  const [items, stats] = await Promise.all([
    Promise.all(app.accounts.map((account) => showAccount(app, account))),
    since === undefined ? undefined : statsSince(app, since),
  ]);
  if (!stats) return items;
  return items.map((item) => ({ ...item, stats: stats(item) }));
}

/** The accounts as this server knows them now: GitHub is not asked. */
export const knownAccounts = ({ accounts }: Scope): z.infer<typeof knownAccountSchema>[] =>
  accounts.map((account) => {
    const { remaining, until, resetAt, common } = viewAccount(account, { quota: account.knownQuota, error: null });
    const { state, reason, unit } = common;
    const { id: account_id, key: account_key } = account;
    return { account_id, account_key, state, reason, until_ms: until, runtime: remaining, unit, reset_at_ms: resetAt };
  });

/** Milliseconds that a page waits for GitHub. */
const timeoutMs = 3000;

async function showAccount({ catalogue }: Scope, account: Account): Promise<AccountItem> {
  const view = viewAccount(account, await quotaWithin(account));
  const { plan, remaining, until, limitedModels, resetAt, updatedAt, common } = view;
  return {
    account_id: account.id,
    account_key: account.key,
    account_type: plan,
    host: account.host,
    app: account.app,
    kind: account.kind,
    temporary: account.temporary,
    auto_only: catalogue.isAutoOnly(account),
    warnings: warningsOf(catalogue.listOf(account)).map(warningInWords),
    runtime: remaining,
    until_ms: until,
    limited_models: limitedModels.map(({ until: until_ms, ...limited }) => ({ ...limited, until_ms })),
    reset_at_ms: resetAt,
    updated_at_ms: updatedAt,
    ...common,
  };
}

const quotaWithin = (account: Account): Promise<QuotaReading> =>
  withTimeLimit(latestQuota(account), timeoutMs, () => ({
    quota: account.knownQuota,
    error: "GitHub is slow to answer; these are the last known figures.",
  }));

async function statsSince({ history }: Scope, since: number): Promise<(item: AccountItem) => AccountStats> {
  const [{ groups }, ever] = await Promise.all([
    history.statistics({ from_ms: since }, ["account_key"]),
    history.statistics({}, ["account_key"]),
  ]);
  const lastOf = new Map(ever.groups.map(({ key, last_at_ms }) => [key.account_key, last_at_ms]));
  return ({ account_key }) => {
    const used = groups.filter(({ key }) => key.account_key === account_key);
    const count = sum(used.map((totals) => totals.request_count));
    return {
      since_ms: since,
      request_count: count,
      error_count: sum(used.map((totals) => totals.error_count)),
      tokens_total: count === 0 ? 0 : sumKnown(used.map(tokensOf)),
      avg_duration_ms: average(used, count),
      last_request_at_ms: lastOf.get(account_key) ?? null,
    };
  };
}

function average(groups: Totals[], count: number): number | null {
  const total = sumKnown(groups.map((totals) => totals.request_count * (totals.avg_duration_ms ?? 0)));
  return count === 0 || total === null ? null : Math.round(total / count);
}

const tokensOf = ({ input_tokens, output_tokens }: Totals): number | null => sumKnown([input_tokens, output_tokens]);
