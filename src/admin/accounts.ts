/** The accounts as the owner sees them: whether each can serve, what is left of its quota, and what it was used for. */
import type { Account, AccountState } from "../accounts/account";
import type { Quota } from "../accounts/quota";
import type { App } from "../app";
import { asProxyError } from "../errors";
import type { Totals } from "../history/history";

/** What nobody said is null, never 0. */
export interface AccountItem {
  account_id: string;
  /** GitHub's word for the plan. */
  account_type: string | null;
  /** `github.com`, or an enterprise's own. */
  host: string;
  /** Given at start, and never saved. */
  temporary: boolean;
  runtime: {
    /** Of `unit`. */
    entitlement: number | null;
    /** May be negative: GitHub counts on after the end. */
    remaining: number | null;
    unlimited: boolean;
    /** A person must act. */
    failed: boolean;
  };
  state: AccountState["name"];
  /** When the state ends by itself; null when it does not. */
  until_ms: number | null;
  reason: string | null;
  unit: Quota["unit"];
  reset_at_ms: number | null;
  /** More than the entitlement may be used, and is paid for. */
  overage: boolean;
  overage_count: number;
  /** GitHub could not be asked: these are the last known numbers, of `updated_at_ms`. */
  stale: boolean;
  updated_at_ms: number | null;
  /** Why it could not be asked. */
  quota_error: string | null;
  stats?: AccountStats;
}

/** Of the exchanges since then. */
export interface AccountStats {
  since_ms: number;
  request_count: number;
  error_count: number;
  /** Input and output, as far as they are known; null when none are. */
  tokens_total: number | null;
  avg_duration_ms: number | null;
  /** Of the newest one that is remembered, also when it was before. */
  last_request_at_ms: number | null;
}

/** @param since With statistics of each account since then (ms). */
export async function listAccounts(app: App, since?: number): Promise<AccountItem[]> {
  const [items, stats] = await Promise.all([
    Promise.all(app.accounts.map(showAccount)),
    since === undefined ? undefined : statsSince(app, since),
  ]);
  return stats ? items.map((item) => ({ ...item, stats: stats(item.account_id) })) : items;
}

/** Milliseconds that a page waits for GitHub. */
const patience = 3000;

async function showAccount(account: Account): Promise<AccountItem> {
  const { quota, error } = await quotaSoon(account);
  const { name, until, reason } = account.state;
  return {
    account_id: account.id,
    account_type: quota?.plan ?? null,
    host: account.host,
    temporary: account.temporary,
    runtime: {
      entitlement: quota?.entitlement ?? null,
      remaining: quota?.remaining ?? null,
      unlimited: quota?.unlimited ?? false,
      failed: name === "failed",
    },
    state: name,
    until_ms: name === "failed" ? null : (until ?? null),
    reason: reason ?? null,
    unit: quota?.unit ?? "unknown",
    reset_at_ms: quota?.resetAt ?? null,
    overage: quota?.overage ?? false,
    overage_count: quota?.overageCount ?? 0,
    stale: error !== null || (quota?.stale ?? false),
    updated_at_ms: quota?.at ?? null,
    quota_error: error,
  };
}

async function quotaSoon(account: Account): Promise<{ quota: Quota | undefined; error: string | null }> {
  const asked = account.quota().then(
    (quota) => ({ quota, error: null }),
    (thrown) => ({ quota: account.knownQuota, error: asProxyError(thrown).message }),
  );
  let timer: Timer | undefined;
  const late = new Promise<{ quota: Quota | undefined; error: string }>((resolve) => {
    const tell = () => resolve({ quota: account.knownQuota, error: "GitHub takes its time to answer." });
    timer = setTimeout(tell, patience);
  });
  return Promise.race([asked, late]).finally(() => clearTimeout(timer));
}

async function statsSince({ history }: App, since: number): Promise<(accountId: string) => AccountStats> {
  const { groups } = await history.statistics({ from_ms: since }, ["account_id"]);
  return (accountId) => {
    const used = groups.find(({ key }) => key.account_id === accountId);
    return {
      since_ms: since,
      request_count: used?.request_count ?? 0,
      error_count: used?.error_count ?? 0,
      tokens_total: used ? tokensOf(used) : 0,
      avg_duration_ms: used?.avg_duration_ms ?? null,
      last_request_at_ms: history.lastOf(accountId) ?? null,
    };
  };
}

function tokensOf({ input_tokens, output_tokens }: Totals): number | null {
  return input_tokens === null && output_tokens === null ? null : (input_tokens ?? 0) + (output_tokens ?? 0);
}
