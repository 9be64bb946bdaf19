/** What is left of each account's quota, its state, and its Copilot token. An unknown value is null. */
import { z } from "zod";
import { ProxyError } from "../lib/errors";
import { lazy } from "../lib/lazy";
import type { Scope } from "../parts/app";
import type { Account } from "../people/accounts/account";
import { latestQuota, viewAccount } from "../people/accounts/account-view";
import type { Quota } from "../people/accounts/quota";
import { usageSchema } from "./schemas";

/** One account of `GET /usage`. */
export type UsageItem = z.infer<ReturnType<typeof usageSchema>>;

export async function accountUsageItem(accounts: readonly Account[]): Promise<{ accounts: UsageItem[] }> {
  return { accounts: await Promise.all(accounts.map(async (account) => (await readUsage(account)).usage)) };
}

export const usageDetailSchema = lazy(() =>
  usageSchema().extend({
    host: z.string(),
    temporary: z.boolean(),
    quota_snapshots: z.looseObject({}).describe("GitHub's own numbers, as it sent them."),
  }),
);

/** One account, with GitHub's own numbers as it sent them. */
export async function accountUsage(app: Scope, index: number): Promise<z.infer<ReturnType<typeof usageDetailSchema>>> {
  const account = accountAt(app, index, "accountIndex");
  const { usage, quota } = await readUsage(account);
  return { ...usage, host: account.host, temporary: account.temporary, quota_snapshots: quota?.snapshots ?? {} };
}

/**
 * `GET /token`: the Copilot token of the first account that can serve, or of `?account=<index>`. A GitHub token is not
 * the upstream's: it does not expire, and is never handed out.
 * @throws ProxyError 409 for an account whose GitHub token is used directly.
 */
export async function token(app: Scope, index: number | undefined): Promise<Response> {
  const account = index === undefined ? app.pool.candidates({ premium: true })[0] : accountAt(app, index, "account");
  if (!account) throw app.pool.whyNone();
  const { bearer, mode, expiresAt } = await account.copilotToken();
  if (mode === "direct") throw noCopilotToken(account);
  return Response.json(
    { token: bearer, expires_at: expiresAt === undefined ? null : Math.floor(expiresAt / 1000) },
    { headers: { "cache-control": "no-store" } },
  );
}

function noCopilotToken({ id }: Account): ProxyError {
  return new ProxyError(
    "conflict",
    `The account ${id} has no Copilot token: its GitHub token is used directly, and that is never shown. An account that was signed in with the app vscode has one; \`?account=<index>\` asks for another account's.`,
    { code: "direct_account" },
  );
}

/** Counted from 0, as `/usage` lists them. @throws ProxyError 404. */
function accountAt(app: Scope, index: number, param: string): Account {
  const account = app.accounts[index];
  if (account) return account;
  const count = app.accounts.length;
  const there = count === 0 ? "none is signed in" : `GET /usage lists ${count}, counted from 0`;
  throw new ProxyError("not_found", `There is no account ${index}: ${there}.`, { param });
}

/** If GitHub cannot be reached, the last known values are returned. */
async function readUsage(account: Account): Promise<{ usage: UsageItem; quota: Quota | undefined }> {
  const reading = await latestQuota(account);
  const { plan, remaining, until, limitedModels, resetAt, updatedAt, common } = viewAccount(account, reading);
  const times = { until: iso(until), reset_at: iso(resetAt), updated_at: iso(updatedAt) };
  const limited_models = limitedModels.map((limited) => ({ ...limited, until: iso(limited.until) }));
  return { quota: reading.quota, usage: { id: account.id, plan, ...remaining, ...common, limited_models, ...times } };
}

/** A time in milliseconds as the endpoints show it. */
export const iso = (time: number | null | undefined) =>
  typeof time === "number" && Number.isFinite(time) ? new Date(time).toISOString() : null;
