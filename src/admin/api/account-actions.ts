/** The sign-ins in the admin API. No token is ever returned. */
import { z } from "zod";
import type { Scope } from "../../parts/app";
import { consentNotice, signInApp } from "../../people/accounts/hosts";
import type { BegunSignIn } from "../../people/accounts/sign-in-store";
import { text } from "./values";

export const newSignInSchema = z.strictObject({
  host: z
    .string()
    .max(253)
    .optional()
    .describe("`github.com` (default), or an enterprise's own, such as company.ghe.com."),
  app: z.string().max(100).optional().describe("`vscode` (default), `opencode`, or a client id of your own."),
});

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

export const newAppSchema = z.strictObject({
  host: newSignInSchema.shape.host,
  app: z.string().max(100).describe("The App ID or client id."),
  installation: z.string().max(20).describe("The number at the end of the address of the installation's page."),
  repository: z
    .string()
    .max(20)
    .optional()
    .describe("The number of any repository there; for an App with the older repository permission."),
  private_key: z.string().max(16_384).describe("PEM; it is kept as other secrets are, and never returned."),
});

export const addedAppSchema = z.object({
  account_id: z.string().describe("The login of the organization."),
  account_key: z.string(),
  renewed: z.boolean().describe("Whether an App was signed in there before."),
  reason: text.describe("Why the saved account cannot be used yet."),
});

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

/** @throws ProxyError as `OwnAccounts.beginSignIn` */
export const beginSignIn = async (
  { ownAccounts }: Scope,
  wanted: z.output<typeof newSignInSchema>,
): Promise<SignInItem> => signInItem(await ownAccounts.beginSignIn(wanted));

/** @throws ProxyError as `OwnAccounts.addApp` */
export async function addApp(
  { ownAccounts }: Scope,
  { private_key: privateKey, ...given }: z.output<typeof newAppSchema>,
): Promise<z.infer<typeof addedAppSchema>> {
  const { login, accountKey, outcome, fault } = await ownAccounts.addApp({ ...given, privateKey });
  return { account_id: login, account_key: accountKey, renewed: outcome === "replaced", reason: fault ?? null };
}

/** @throws ProxyError `not_found`. */
export const showSignIn = async ({ ownAccounts }: Scope, id: string): Promise<SignInItem> =>
  signInItem(await ownAccounts.signIn(id));

/** @throws ProxyError `not_found`. */
export const cancelSignIn = async ({ ownAccounts }: Scope, id: string): Promise<SignInItem> =>
  signInItem(await ownAccounts.cancelSignIn(id));
