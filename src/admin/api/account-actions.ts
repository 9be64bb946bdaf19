/** What the owner does with accounts: sign in, pause, order, remove. No token is ever returned. */
import { z } from "zod";
import { accountKeyOf, accountNotFound } from "../../accounts/account-store";
import { consentNotice, revocationPage, signInApp } from "../../accounts/hosts";
import type { BegunSignIn } from "../../accounts/sign-in-store";
import type { App } from "../../app";
import { checkEnterpriseHost } from "../../config/environment";
import { repeatChange } from "../../config/repeat-change";
import { ProxyError } from "../../errors";

export const newSignInSchema = z.strictObject({
  host: z
    .string()
    .max(253)
    .optional()
    .describe("`github.com` (default), or an enterprise's own, such as company.ghe.com."),
  app: z.string().max(100).optional().describe("`vscode` (default), `opencode`, or a client id of your own."),
});

const text = z.string().nullable();

export const signInSchema = z
  .object({
    id: z.string(),
    state: z.enum(["waiting", "done", "failed", "cancelled"]),
    host: z.string(),
    app: z.string(),
    notice: z.string().describe("What the person should know before approving."),
    user_code: z.string().describe("What the person types at `address`."),
    address: z.string(),
    warning: text.describe("Set if `address` is not GitHub's own."),
    expires_at_ms: z.number().int().describe("Unix time, ms."),
    account_id: text.describe("Who signed in; null before that."),
    account_key: text,
    renewed: z.boolean().describe("Whether this person was signed in before."),
    reason: text.describe("Why it failed, or why the saved account cannot be used yet."),
  })
  .meta({ id: "SignIn" });
export type SignInItem = z.infer<typeof signInSchema>;

export const accountKeySchema = z
  .string()
  .max(300)
  .describe("As GET /api/admin/accounts has it: `github.com/octocat`.");

function signInItem({ id, host, app, code, expiresAt, state }: BegunSignIn): SignInItem {
  const { userCode, address, warning } = code;
  const done = state.name === "done" ? state : undefined;
  return {
    id,
    state: state.name,
    host,
    app,
    notice: consentNotice(signInApp(app)),
    user_code: userCode,
    address,
    warning: warning ?? null,
    expires_at_ms: expiresAt,
    account_id: done?.login ?? null,
    account_key: done?.accountKey ?? null,
    renewed: done?.outcome === "replaced",
    reason: (state.name === "failed" ? state.reason : done?.fault) ?? null,
  };
}

/**
 * @param member The id of the member whose account it will be; missing for the owner's.
 * @throws ProxyError `invalid_request`, `conflict`; `permission` for a member's host that is not GitHub's; or what GitHub answered
 */
export async function beginSignIn(
  app: App,
  wanted: z.output<typeof newSignInSchema>,
  member?: string,
): Promise<SignInItem> {
  const { enterpriseHost, oauthApp } = app.environment;
  const host = wanted.host === undefined ? enterpriseHost : checkEnterpriseHost("host", wanted.host);
  if (member !== undefined && wanted.host !== undefined) refuseOtherHost(app, host!);
  return signInItem(await app.signIns.begin({ host, app: signInApp(wanted.app ?? oauthApp, host), member }));
}

/**
 * Whoever runs a host gets the headers of the config, and teaches all members what a model supports. So members use GitHub's, and
 * those that the owner uses. @throws ProxyError `permission`
 */
function refuseOtherHost({ environment, allAccounts }: App, host: string): void {
  if (host === "github.com" || /^[^.]+\.ghe\.com$/.test(host) || host === environment.enterpriseHost) return;
  if (allAccounts.some(({ member, key }) => member === null && key.startsWith(`${host}/`))) return;
  throw new ProxyError(
    "permission",
    "Members sign in at github.com, at an enterprise's host below ghe.com, or where the owner of this dragoman has an account.",
    { code: "host_not_allowed", param: "host" },
  );
}

/** @param member Whose sign-in it is; null for the owner's. @throws ProxyError `not_found`. */
export async function showSignIn(app: App, id: string, member: string | null = null): Promise<SignInItem> {
  const found = await app.signIns.find(id);
  if (found?.member === member) return signInItem(found);
  throw new ProxyError(
    "not_found",
    "There is no such sign-in. It may have ended a while ago, or be older than the last start of dragoman. Begin another.",
  );
}

/** @throws ProxyError `not_found`. */
export async function cancelSignIn(app: App, id: string, member: string | null = null): Promise<SignInItem> {
  await showSignIn(app, id, member);
  await app.signIns.cancel(id);
  return showSignIn(app, id, member);
}

/**
 * A paused account gets no requests; those in progress finish. Members' pauses are kept with their accounts, the owner's in the
 * config. @throws ProxyError `not_found`, `conflict`
 */
export async function pauseAccount(app: App, key: string, paused: boolean): Promise<{ paused: boolean }> {
  const saved = savedKey(app, key);
  const { member } = app.accounts.find((account) => account.key === saved)!;
  if (member !== null) await app.accountStore.choices!.pause(member, saved, paused);
  else await pauseInConfig(app, saved, paused);
  app.refreshAccounts();
  app.logger.info(`${saved} was ${paused ? "paused" : "resumed"}.`);
  return { paused };
}

async function pauseInConfig(app: App, saved: string, paused: boolean): Promise<void> {
  await repeatChange(app.config, ({ current: { pausedAccounts } }) => {
    const others = pausedAccounts.filter((each) => each !== saved);
    return { pausedAccounts: paused ? [...others, saved] : others };
  });
}

/** @param keys They come first, in this order; the others keep theirs. @throws ProxyError `not_found`, `conflict` */
export async function orderAccounts(app: App, keys: readonly string[]): Promise<{ account_keys: string[] }> {
  const wanted = [...new Set(keys.map((key) => savedKey(app, key)))];
  const rest = savedKeys(app).filter((key) => !wanted.includes(key));
  const all = [...wanted, ...rest];
  const member = app.accounts.find((account) => account.member !== null)?.member;
  if (member) await app.accountStore.choices!.arrange(member, all);
  else await repeatChange(app.config, () => ({ accountOrder: all }));
  app.refreshAccounts();
  return { account_keys: all };
}

/** @param by Places, negative to the front. @throws as `orderAccounts` */
export async function moveAccount(app: App, key: string, by: number): Promise<void> {
  const keys = savedKeys(app);
  const at = keys.indexOf(savedKey(app, key));
  const to = Math.min(Math.max(at + by, 0), keys.length - 1);
  await orderAccounts(app, keys.toSpliced(at, 1).toSpliced(to, 0, keys[at]!));
}

/** Requests in progress finish; the history stays. @throws ProxyError `not_found`, `conflict` */
export async function removeAccount(app: App, key: string): Promise<{ removed: true; revoke_at: string }> {
  const { removed } = await app.accountStore.remove(savedKey(app, key));
  app.refreshAccounts();
  const gone = accountKeyOf(removed);
  // What the config has is about the owner's accounts.
  if (removed.member === undefined) await forgetInConfig(app, gone);
  app.logger.info(`${gone} was removed.`);
  return { removed: true, revoke_at: revocationPage(removed) };
}

async function forgetInConfig(app: App, gone: string): Promise<void> {
  const { accountOrder, pausedAccounts } = app.config.current;
  // An account that is added again later begins anew.
  if ([...accountOrder, ...pausedAccounts].includes(gone))
    await repeatChange(app.config, ({ current }) => ({
      accountOrder: current.accountOrder.filter((each) => each !== gone),
      pausedAccounts: current.pausedAccounts.filter((each) => each !== gone),
    }));
}

/** The saved accounts, in the order in which they are used. */
const savedKeys = ({ accounts }: App) => accounts.filter(({ temporary }) => !temporary).map(({ key }) => key);

/** @throws ProxyError `not_found`; `conflict` for an account that was passed at start. */
function savedKey(app: App, given: string): string {
  const key = given.toLowerCase();
  const account = app.accounts.find((each) => each.key === key);
  if (account?.temporary)
    throw new ProxyError("conflict", "This account was passed at start and is not saved. Restart without it.");
  if (account) return key;
  throw accountNotFound(given);
}
