/** github.com and its REST host: the device flow, the user, the Copilot token and the report of credits. */
import type { DemoAccount } from "./accounts";
import { tokenIn } from "./auth";
import type { Arrival, DemoState, SeenRequest } from "./state";
import { githubError, type Json, randomId, record, string } from "./wire";

/** Token prefixes by kind of app: tokens of GitHub Apps are exchanged, those of OAuth Apps are not. */
const applications = [
  { clientId: /^Iv/, prefix: "ghu_", scope: "" },
  { clientId: /^Ov/, prefix: "gho_", scope: "read:user" },
];

/** POST /login/device/code, JSON or form. */
export function startDeviceFlow({ demo, seen }: Arrival): Response {
  const clientId = string(fields(seen).client_id);
  if (!applications.some((application) => application.clientId.test(clientId)))
    return encodeAnswer(seen, { error: "Not Found" }, 404);
  const device_code = randomId("", 40);
  const { interval } = demo.device;
  demo.grants.set(device_code, { clientId, interval, polls: 0, lastPoll: demo.now(), until: demo.now() + 900_000 });
  const user_code = `DEMO-${String(demo.grants.size).padStart(4, "0")}`;
  const verification_uri = `${demo.url}/login/device`;
  return encodeAnswer(seen, { device_code, user_code, verification_uri, expires_in: 900, interval });
}

/** GET /login/oauth/authorize: the browser is that of `login`, or of the next account. The demo's person allows everything. */
export function authorize({ demo, seen }: Arrival): Response {
  const asked = new URLSearchParams(seen.query);
  const code = randomId("", 20);
  const clientId = asked.get("client_id") ?? "";
  const redirect = asked.get("redirect_uri") ?? "";
  demo.codes.set(code, { clientId, redirect, challenge: asked.get("code_challenge"), login: asked.get("login") });
  const back = new URLSearchParams({ code, state: asked.get("state") ?? "" });
  return new Response(null, { status: 302, headers: { location: `${redirect}?${back}` } });
}

/** The token for a code, which is good once. */
function redeem({ demo, seen }: Arrival): Response {
  const { client_id, client_secret, code, code_verifier, redirect_uri } = fields(seen);
  const grant = demo.codes.get(string(code));
  demo.codes.delete(string(code));
  const challenge = new Bun.CryptoHasher("sha256").update(string(code_verifier)).digest("base64url");
  if (!grant || grant.challenge !== challenge) return encodeAnswer(seen, { error: "bad_verification_code" });
  if (grant.redirect !== redirect_uri) return encodeAnswer(seen, { error: "redirect_uri_mismatch" });
  if (grant.clientId !== client_id || client_secret !== demo.clientSecret)
    return encodeAnswer(seen, { error: "incorrect_client_credentials" });
  const account = demo.accounts.find(({ login }) => login === grant.login);
  const access_token = account?.githubToken ?? nextToken(demo, "ghu_");
  return encodeAnswer(seen, { access_token, token_type: "bearer", scope: "" });
}

/** POST /login/oauth/access_token. Pending and failed polls are HTTP 200 with an `error`. */
export function pollDeviceFlow(arrival: Arrival): Response {
  const { demo, seen } = arrival;
  if (fields(seen).code !== undefined) return redeem(arrival);
  const { client_id, device_code, grant_type } = fields(seen);
  const error_uri = "https://docs.github.com/developers";
  const fail = (error: string, extra: Json = {}) =>
    encodeAnswer(seen, { error, error_description: `DEMO: ${error}`, error_uri, ...extra });
  if (grant_type !== "urn:ietf:params:oauth:grant-type:device_code") return fail("unsupported_grant_type");
  const grant = demo.grants.get(string(device_code));
  if (!grant) return fail("incorrect_device_code");
  if (grant.clientId !== client_id) return fail("incorrect_client_credentials");
  const early = demo.now() - grant.lastPoll < grant.interval * 1000;
  grant.lastPoll = demo.now();
  if (demo.now() >= grant.until) return fail("expired_token");
  if (early) {
    grant.interval += 5;
    return fail("slow_down", { interval: grant.interval });
  }
  grant.polls += 1;
  if (grant.polls <= demo.device.pending) return fail("authorization_pending");
  if (demo.device.outcome !== "success") return fail(demo.device.outcome);
  demo.grants.delete(string(device_code));
  const { prefix, scope } = applications.find(({ clientId }) => clientId.test(grant.clientId))!;
  return encodeAnswer(seen, { access_token: nextToken(demo, prefix), token_type: "bearer", scope });
}

/** The account of the next sign-in with such an app: one that nobody has signed in with; if there is none, the accounts take turns. */
function nextToken(demo: DemoState, prefix: string): string {
  const candidates = demo.accounts.filter((account) => account.githubToken.startsWith(prefix));
  const turn = demo.signIns.filter((account) => candidates.includes(account)).length;
  const next = candidates.find((account) => !demo.signIns.includes(account)) ?? candidates[turn % candidates.length];
  if (next) demo.signIns.push(next);
  return next?.githubToken ?? `${prefix}DEMOnobody`;
}

/** GET /login/device */
export const devicePage = () =>
  new Response(
    "<!doctype html><title>DEMO sign-in</title><h1>DEMO</h1><p>There is nothing to type here: the demo approves every code.</p>",
    { headers: { "content-type": "text/html; charset=utf-8" } },
  );

/** GET /user */
export function whoAmI({ demo }: Arrival, account: DemoAccount): Response {
  return Response.json({
    login: account.login,
    id: 1000 + demo.accounts.indexOf(account),
    type: "User",
    name: `DEMO ${account.login}`,
    email: null,
    two_factor_authentication: true,
    created_at: "2020-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:00:00Z",
  });
}

/** GET /copilot_internal/v2/token: the exchange. */
export function exchangeToken({ demo }: Arrival, account: DemoAccount): Response {
  if (!/^gh[su]_/.test(account.githubToken)) throw githubError(404, "Not Found");
  const { tokenLifetime = 1800, refreshIn = 1500, host } = account;
  const expires = Math.floor(demo.now() / 1000) + tokenLifetime;
  const token = mint(account, expires);
  demo.issued.set(token, { account, until: demo.now() + tokenLifetime * 1000 });
  const free = account.plan === "free" ? account.quota : undefined;
  return Response.json({
    token,
    expires_at: expires,
    refresh_in: refreshIn,
    sku: account.sku,
    individual: host === "individual",
    chat_enabled: true,
    endpoints: {
      api: demo.urls[host],
      "origin-tracker": "https://origin-tracker.invalid",
      proxy: "https://proxy.invalid",
      telemetry: "https://telemetry.invalid",
    },
    organization_list: host === "business" ? ["a5db0bcaae94032fe715fb34a5e4bce2"] : [],
    enterprise_list: null,
    limited_user_quotas: free ? { chat: free.chat.remaining, completions: free.completions.remaining } : null,
    limited_user_reset_date: null,
    telemetry: "disabled",
    public_suggestions: "enabled",
    copilotignore_enabled: false,
    tracking_id: "demo",
  });
}

/** `key=value;…:mac`. Clients must send it unchanged. */
function mint({ sku, host }: DemoAccount, expires: number): string {
  const hex = (bytes: number) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");
  const claims = `tid=${hex(16)};exp=${expires};sku=${sku};proxy-ep=proxy.${host}.invalid;st=dotcom;chat=1;cit=1;malfil=1`;
  return `${claims};editor_preview_features=1;agent_mode=1;mcp=1;rt=1;8kp=1;ip=203.0.113.7;asn=AS64500:${hex(32)}`;
}

/**
 * GET /users/{login}/settings/billing/ai_credit/usage: what an account was charged, by model, in a month or on a day of it. Only a
 * token with the right to the plan reads it, and only for a plan that the person pays for.
 */
export function creditUsage({ demo, seen }: Arrival, account: DemoAccount): Response {
  const login = decodeURIComponent(seen.path.split("/")[2] ?? "");
  if (tokenIn(seen.headers.authorization) !== account.planToken)
    throw githubError(403, "Resource not accessible by integration");
  if (account.login.toLowerCase() !== login.toLowerCase() || account.host === "business")
    throw githubError(404, "Not Found");
  const asked = new URLSearchParams(seen.query);
  const today = new Date(demo.now());
  const year = Number(asked.get("year") ?? today.getUTCFullYear());
  const month = Number(asked.get("month") ?? today.getUTCMonth() + 1);
  const day = asked.has("day") ? Number(asked.get("day")) : undefined;
  const from = Date.UTC(year, month - 1, day ?? 1);
  const to = day === undefined ? Date.UTC(year, month, 1) : Date.UTC(year, month - 1, day + 1);
  const charges = demo.charges.filter((each) => each.login === account.login && each.at >= from && each.at < to);
  const usageItems = [...Map.groupBy(charges, ({ model }) => model)].map(([model, ofModel]) => {
    const credits = ofModel.reduce((sum, each) => sum + each.credits, 0);
    return {
      product: "Copilot",
      sku: "Copilot AI Credits",
      model,
      unitType: "ai-credits",
      pricePerUnit: 0.01,
      grossQuantity: credits,
      grossAmount: credits / 100,
      discountQuantity: credits,
      discountAmount: credits / 100,
      netQuantity: 0,
      netAmount: 0,
    };
  });
  return Response.json({ timePeriod: { year, month, ...(day && { day }) }, user: account.login, usageItems });
}

const fields = ({ body }: SeenRequest): Json =>
  typeof body === "string" ? Object.fromEntries(new URLSearchParams(body)) : record(body);

/** Without `Accept: application/json` the answer is form-encoded. */
function encodeAnswer({ headers }: SeenRequest, answer: Json, status = 200): Response {
  if (headers.accept?.includes("json")) return Response.json(answer, { status });
  const form = new URLSearchParams(
    Object.entries(answer).map(([key, value]): [string, string] => [key, String(value)]),
  );
  return new Response(form.toString(), { status, headers: { "content-type": "application/x-www-form-urlencoded" } });
}
