/**
 * Anthropic's gateway protocol, by which Claude Code signs in with `/login` and gets its settings: OAuth's device flow
 * (RFC 8628, RFC 8414, RFC 7009), managed settings, and telemetry, which is counted and not kept. `claude gateway` of Claude Code
 * 2.1.330 serves its text at `GET /protocol`.
 */

import { gatewayPaths } from "../lib/api-paths";
import { asProxyError, ProxyError } from "../lib/errors";
import { networkOf } from "../lib/net/address";
import { browserUrl } from "../lib/net/in/browser-url";
import { limitBytes } from "../lib/net/in/byte-limit";
import { sha256 } from "../lib/net/in/credentials";
import type { Scope, Server } from "../parts/app";
import { binds } from "../people/budgets/budgets";
import type { BudgetState } from "../people/budgets/entries";
import { isOwnAmount } from "../people/budgets/holders";
import { amountOf } from "../people/budgets/sentences";
import { type KeyedCaller, mayUse } from "../people/keys/client-keys";
import { type Logins, toolName } from "../people/keys/logins";
import { allModels } from "../proxy/upstream/models/all-models";
import { ownClientModels } from "../proxy/upstream/models/model-view";

/** Where a member confirms a sign-in. */
const confirmPath = "/admin/device";

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

/** What a handler finds. Elysia reads the names in its text. */
interface Asked {
  dragoman: Server;
  request: Request;
  caller: KeyedCaller;
}

interface AskedByMember extends Pick<Asked, "request" | "caller"> {
  scope: Scope;
}

/** @throws ProxyError `not_found` where there are no members to sign in. */
function loginsOf({ logins, members }: Server): Logins {
  if (logins && members?.needKeys) return logins;
  throw new ProxyError(
    "not_found",
    "Nobody signs in here: this dragoman has no members. Use its address, and a client key if it asks for one.",
  );
}

export function discovery({ dragoman, request }: Asked): Response {
  loginsOf(dragoman);
  const { origin } = browserUrl(request);
  return fresh({
    issuer: origin,
    device_authorization_endpoint: origin + gatewayPaths.device,
    token_endpoint: origin + gatewayPaths.token,
    revocation_endpoint: origin + gatewayPaths.revoke,
    grant_types_supported: [deviceGrant, "refresh_token"],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ["none"],
  });
}

export const beginLogin = ({ dragoman, request, caller }: Asked): Promise<Response> =>
  inOauth(dragoman, request, caller, async (form, logins, network) => {
    const begun = await logins.begin(toolName(form.get("surface")), network ?? null);
    const confirm = browserUrl(request).origin + confirmPath;
    return fresh({
      device_code: begun.deviceCode,
      user_code: begun.userCode,
      verification_uri: confirm,
      verification_uri_complete: `${confirm}?user_code=${begun.userCode}`,
      expires_in: begun.expiresIn,
      interval: begun.interval,
      login_notice: "Confirm the code only if you have just asked for it yourself.",
    });
  });

export const giveTokens = ({ dragoman, request, caller }: Asked): Promise<Response> =>
  inOauth(dragoman, request, caller, async (form, logins, network) => {
    const { deviceTokens: tries } = dragoman.wrongSecrets;
    const [grant, code] = [form.get("grant_type"), form.get("device_code")];
    const sent = grant === deviceGrant ? code : form.get("refresh_token");
    if (grant !== deviceGrant && grant !== "refresh_token") return refused("unsupported_grant_type");
    if (!sent) return refused("invalid_request");
    if (network !== undefined) tries.refuse(network, sent);
    const given = grant === deviceGrant ? await logins.poll(sent) : ((await logins.refresh(sent)) ?? "invalid_grant");
    if (given === "invalid_grant" && network !== undefined) tries.count(network, sent);
    // By 401 Claude Code knows that the person has to sign in again.
    if (typeof given === "string")
      return refused(given, given === "invalid_grant" && grant !== deviceGrant ? 401 : 400);
    return fresh({
      access_token: given.accessToken,
      token_type: "Bearer",
      expires_in: given.expiresIn,
      refresh_token: given.refreshToken,
      // Shown by Claude Code, so that the person sees whose account it will use.
      email: given.member,
    });
  });

/** As RFC 7009 has it, a token that is not known is no error. */
export const endLogin = ({ dragoman, request, caller }: Asked): Promise<Response> =>
  inOauth(dragoman, request, caller, async (form, logins) => {
    const token = form.get("token");
    if (!token) return refused("invalid_request");
    await logins.end(token);
    return new Response(null, { status: 200 });
  });

/** Answers in OAuth's words. */
async function inOauth(
  dragoman: Server,
  request: Request,
  caller: KeyedCaller,
  answer: (form: URLSearchParams, logins: Logins, network: string | undefined) => Promise<Response>,
): Promise<Response> {
  const logins = loginsOf(dragoman);
  const network = caller.local ? undefined : networkOf(caller.peer ?? "unknown");
  try {
    return await answer(await readFields(request), logins, network);
  } catch (thrown) {
    const { kind, status, message, details } = asProxyError(thrown);
    if (kind === "internal") throw thrown;
    const code = kind === "rate_limit" ? "slow_down" : status < 500 ? "invalid_request" : "temporarily_unavailable";
    return refused(code, status, message, details.headers);
  }
}

const refused = (error: string, status = 400, description?: string, headers: Record<string, string> = {}) =>
  Response.json(
    { error, ...(description && { error_description: description }) },
    { status, headers: { ...headers, "cache-control": "no-store" } },
  );

const fresh = (body: object) => Response.json(body, { headers: { "cache-control": "no-store" } });

/** Bytes of a form. */
const maxForm = 16 * 1024;

async function readFields(request: Request): Promise<URLSearchParams> {
  const tooLarge = () => new ProxyError("too_large", "The form is larger than 16 kB.");
  const bytes = Buffer.concat(await Array.fromAsync(limitBytes(request.body ?? [], maxForm, tooLarge)));
  return new URLSearchParams(bytes.toString());
}

/** The settings of Claude Code for the member, with the checksum by which it asks whether they have changed. */
export async function managedSettings({ scope, request, caller }: AskedByMember): Promise<Response> {
  const settings = await settingsFor(scope, caller);
  const checksum = `sha256:${sha256(JSON.stringify(sorted(settings))).toString("hex")}`;
  const headers = { etag: `"${checksum}"`, "cache-control": "no-store" };
  const known = request.headers.get("if-none-match");
  if (known?.split(",").some((each) => each.trim().replace(/^W\//, "") === headers.etag))
    return new Response(null, { status: 304, headers });
  return Response.json({ uuid: checksum.slice(7, 43), checksum, settings }, { headers });
}

async function settingsFor(app: Scope, { key }: KeyedCaller): Promise<Record<string, unknown>> {
  const { clientOf } = await import("../clients/index");
  const { chooseModels } = await import("../clients/models");
  const { models } = await allModels(app, "cached");
  const usable = models.filter(({ id }) => mayUse(key, id));
  const choice = chooseModels(ownClientModels(usable, app.config.current));
  const own = choice && clientOf("claude-code").setUp({ url: "", models: choice });
  // The address and the token come from the sign-in. Claude Code's own default would be the dearest class.
  const { ANTHROPIC_BASE_URL, ANTHROPIC_AUTH_TOKEN, ANTHROPIC_MODEL, ...variables } = own?.variables ?? {};
  const { env, ...given } = app.config.current.claudeCodeSettings;
  const words = budgetWords(app, key);
  return {
    ...(ANTHROPIC_MODEL !== undefined && { model: ANTHROPIC_MODEL }),
    ...(words.length > 0 && { companyAnnouncements: words }),
    ...given,
    env: { ...variables, CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1", ...(env as object | undefined) },
  };
}

/** What limits the member's requests, without what was used: that changes all the time. */
function budgetWords({ budgets }: Scope, key: KeyedCaller["key"]): string[] {
  if (!key) return [];
  const member = budgets.memberOf(key.member);
  return budgets.budgets
    .filter((budget) => binds(budget, key, member))
    .map((budget) => `Budget ${budget.name}: ${amountOf(budget.limit, budget)} a ${budget.per}.`);
}

const groups = { day: "daily", month: "monthly" };

/**
 * As Claude Code 2.1.330 reads it where it has signed in, for its `/usage`. An AI credit costs a US cent.
 * @throws ProxyError `not_found` without such a budget: Claude Code shows nothing then.
 */
export async function budgetUsage({ scope, caller: { key } }: AskedByMember): Promise<Response> {
  const member = scope.budgets.memberOf(key?.member ?? null);
  const person = { member, keys: key ? [key.name] : [], accounts: scope.accounts };
  const own = (await scope.budgets.statesOfMember(person)).filter(
    ({ budget }) => budget.unit === "credits" && isOwnAmount(budget, member?.name ?? ""),
  );
  const share = ({ used, budget }: BudgetState) => used / budget.limit;
  const [first] = own.sort((one, other) => share(other) - share(one));
  if (!first) throw new ProxyError("not_found", "No budget in AI credits is this member's own.");
  const { budget, used, resetsAt } = first;
  const utilization = Math.min(100, share(first) * 100);
  return fresh({
    extra_usage: { monthly_limit: budget.limit, used_credits: used, utilization, currency: "USD" },
    limits: [{ group: groups[budget.per], resets_at: new Date(resetsAt).toISOString(), is_active: true }],
  });
}

/** JSON with the members of each object in the order of their names. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}

/** Counted by kind, and nothing of it kept. */
export async function takeTelemetry(scope: Scope, request: Request, kind: string): Promise<Response> {
  await request.body?.cancel();
  scope.exchangeMetrics.clientTelemetry.add([kind], 1);
  return Response.json({});
}
