/** Every path under /api/admin in one table, all of them behind one guard. */

import { z } from "zod";
import type { App, Scope, Server } from "../../app";
import { budgetListSchema } from "../../budgets/budget-list";
import { type Endpoint, endpointsOf, readQuery, requireJson } from "../../endpoint";
import { ProxyError } from "../../errors";
import { dayMs } from "../../format";
import { keyGone, requireLasting } from "../../keys/client-keys";
import { createdKeySchema, keyListSchema } from "../../keys/key-list";
import { memberLimitsSchema, newMemberSchema } from "../../keys/member-fields";
import { memberListSchema } from "../../keys/member-list";
import { newKeySchema } from "../../keys/stored-keys";
import { type Answers, matcherOf, methodNotAllowed, methodsOf } from "../../matcher";
import { browserUrl } from "../../net/in/browser-url";
import type { Visitor } from "../../net/in/guard";
import { decodedParams } from "../../net/in/params";
import type { EndpointGroup } from "../../openapi";
import { driftList, driftListSchema } from "../../upstream/changes/drift-list";
import { adminGuard, keyPermit, keySentTo } from "../access/authorize";
import {
  accountKeySchema,
  beginSignIn,
  cancelSignIn,
  newSignInSchema,
  showSignIn,
  signInSchema,
} from "./account-actions";
import { listAccounts } from "./accounts";
import { billOf } from "./bill";
import { addBudget, listBudgets, newBudgetSchema, removeBudget } from "./budgets";
import { cacheReport, cacheReportSchema } from "./cache";
import { changeConfig, showConfig } from "./config";
import { answerExport, answerLive, cancelRequest, getRequest } from "./handlers";
import { createClientKey, listKeys, revokeClientKey } from "./keys";
import {
  dismissMember,
  invitedSchema,
  inviteMember,
  limitMember,
  listMembers,
  memberDetailSchema,
  membersQuery,
  showMember,
  shownLimitsSchema,
  withdrawInvitations,
} from "./members";
import { describeInstance } from "./meta";
import { modelItems } from "./models";
import { listPrompts, promptPageSchema } from "./prompts";
import { dimensionWords, queries } from "./query";
import { reconcile, reconcileSchema, reconciliationSchema } from "./reconcile";
import { listRequests } from "./requests";
import {
  accountSchema,
  adminErrorSchema,
  configAnswerSchema,
  configPatchSchema,
  entrySchema,
  liveEventSchema,
  metaSchema,
  modelSchema,
  pageSchema,
  requestSchema,
  statisticsSchema,
  totalsSchema,
} from "./schemas";

/** What a handler of the admin API gets. */
interface AdminContext {
  /** What the caller may use: a member has their own accounts and requests only. */
  app: Scope;
  /** The caller's id as a member; null for the owner. */
  member: string | null;
  request: Request;
  caller: Visitor;
  /** @throws ProxyError `authentication` if the member's key was revoked since the request began. */
  requireStillAllowed(): void;
  /** The OpenAPI document of the whole server. */
  describeApi(): Promise<object>;
}

/** The same for the owner, who has everything. */
interface OwnerContext extends AdminContext {
  app: App;
}

interface MemberColumns {
  role: "member";
  /** It makes something that is good for longer than a tool's token, which may not ask. */
  lasts?: true;
}

type AdminRoute = Endpoint<AdminContext, MemberColumns> | Endpoint<OwnerContext, { role: "owner" }>;

const headers = { "cache-control": "no-store" };
const endpoint = endpointsOf<AdminContext, MemberColumns>(headers, readQuery);
const ownerEndpoint = endpointsOf<OwnerContext, { role: "owner" }>(headers, readQuery);

/** Only its content type counts. */
const emptyBody = z.looseObject({}).describe("Empty. A web page of another origin cannot send this content type.");

const filterNames = Object.keys(queries.filters.shape)
  .map((name) => `\`${name}\``)
  .join(", ");

// biome-ignore format: a table
export const adminRoutes: AdminRoute[] = [
  ownerEndpoint({ method: "GET", path: "/api/admin/meta", role: "owner", about: "The program and its history: file, limits, number of rows, oldest row, and whether it can be written.",
    response: metaSchema,
    handle: ({ app }) => describeInstance(app) }),
  endpoint({ method: "GET", path: "/api/admin/accounts", role: "member", about: "The accounts: state, plan, remaining quota and its reset; with `include_stats=1`, the usage of each since `since_ms` (default: a day ago).",
    query: queries.accounts, response: z.object({ items: z.array(accountSchema) }),
    handle: async ({ app, query: { include_stats, since_ms = app.now() - dayMs } }) => ({ items: await listAccounts(app, include_stats ? since_ms : undefined) }) }),
  endpoint({ method: "POST", path: "/api/admin/accounts/sign-ins", role: "member", lasts: true, about: "Begins a sign-in at GitHub. A person types `user_code` at `address`; meanwhile ask for the sign-in's state.",
    body: newSignInSchema, response: signInSchema, errors: ["conflict", "upstream", "timeout"],
    handle: ({ app, body }) => beginSignIn(app, body) }),
  endpoint({ method: "GET", path: "/api/admin/accounts/sign-ins/:id", role: "member", about: "The state of a sign-in: waiting, done, failed or cancelled.",
    response: signInSchema, errors: ["not_found"],
    handle: ({ app, params }) => showSignIn(app, params.id) }),
  endpoint({ method: "POST", path: "/api/admin/accounts/sign-ins/:id/cancel", role: "member", about: "Stops waiting for a sign-in.",
    reads: emptyBody, response: signInSchema, errors: ["not_found"],
    handle: ({ app, params }) => cancelSignIn(app, params.id) }),
  endpoint({ method: "POST", path: "/api/admin/accounts/pause", role: "member", about: "Pauses an account, which then gets no requests, or resumes it: `{\"account_key\", \"paused\"}`.",
    body: z.strictObject({ account_key: accountKeySchema, paused: z.boolean() }), response: z.object({ paused: z.boolean() }), errors: ["not_found", "conflict"],
    handle: async ({ app, body: { account_key, paused } }) => { await app.ownAccounts.pause(account_key, paused); return { paused }; } }),
  endpoint({ method: "POST", path: "/api/admin/accounts/order", role: "member", about: "Sets the order in which accounts are used: `{\"account_keys\"}` come first, the others follow.",
    body: z.strictObject({ account_keys: z.array(accountKeySchema).max(1_000) }), response: z.object({ account_keys: z.array(z.string()) }), errors: ["not_found", "conflict"],
    handle: async ({ app, body: { account_keys } }) => ({ account_keys: await app.ownAccounts.arrange(account_keys) }) }),
  endpoint({ method: "POST", path: "/api/admin/accounts/remove", role: "member", about: "Removes an account: `{\"account_key\"}`. Its requests stay in the history. `revoke_at` is GitHub's page for revoking the sign-in too.",
    body: z.strictObject({ account_key: accountKeySchema }), response: z.object({ removed: z.literal(true), revoke_at: z.string() }), errors: ["not_found", "conflict"],
    handle: async ({ app, body: { account_key } }) => ({ removed: true as const, revoke_at: await app.ownAccounts.remove(account_key) }) }),
  endpoint({ method: "GET", path: "/api/admin/requests", role: "member", about: `The history, newest first: 50 rows or \`limit\` (at most 200), continued with \`cursor_id\`; filtered by ${filterNames}.`,
    query: queries.requests, response: pageSchema,
    handle: ({ app, query: { limit, cursor_id, ...filters } }) => listRequests(app, filters, limit, cursor_id) }),
  endpoint({ method: "GET", path: "/api/admin/requests/:requestId", role: "member", about: "One request, running or ended.",
    response: requestSchema, errors: ["not_found"],
    handle: ({ app, params }) => getRequest(app, params.requestId) }),
  endpoint({ method: "GET", path: "/api/admin/prompts", role: "member", about: "What each prompt came to, with its subagents and why: the newest first, 50 or `limit` (at most 200), continued with `cursor_id`, filtered as requests are. Clients name their prompts by ids; those that do not are added up in `without_prompt`.",
    query: queries.requests, response: promptPageSchema,
    handle: ({ app, query: { limit, cursor_id, ...filters } }) => listPrompts(app, filters, limit, cursor_id) }),
  endpoint({ method: "GET", path: "/api/admin/bill", role: "member", about: "What matching requests cost by day, as CSV: prompts, requests, AI credits, US dollars, premium requests. With `project`, the bill of a client's work.",
    query: queries.filters, response: () => ({ "text/csv": z.string() }),
    handle: async ({ app, query, request }) => new Response(await billOf(app, query, request.signal), { headers: { "cache-control": "no-store", "content-type": "text/csv; charset=utf-8", "content-disposition": 'attachment; filename="dragoman-bill.csv"' } }) }),
  ownerEndpoint({ method: "POST", path: "/api/admin/reconcile", role: "owner", about: "GitHub's own report of an account's AI credits in a month beside the sums of the history, by day and model, with likely causes of the differences. It needs a token that may read the plan; 502 says what GitHub refuses.",
    body: reconcileSchema, response: reconciliationSchema, errors: ["not_found", "upstream", "timeout"],
    handle: ({ app, body }) => reconcile(app, body) }),
  endpoint({ method: "GET", path: "/api/admin/totals", role: "member", about: "The totals of all matching requests: success, tokens, cost, times. Unknown values are counted separately.",
    query: queries.filters, response: totalsSchema,
    handle: ({ app, query }) => app.history.totals(query) }),
  endpoint({ method: "GET", path: "/api/admin/statistics", role: "member", about: `The same totals in groups: \`by\` takes one or two of ${dimensionWords}.`,
    query: queries.statistics, response: statisticsSchema,
    handle: ({ app, request, query: { by, ...filters } }) => app.history.statistics(filters, by, request.signal) }),
  endpoint({ method: "GET", path: "/api/admin/export", role: "member", about: "All matching requests as a file: `format=csv` or `json`.",
    query: queries.export, response: { "text/csv": z.string(), "application/json": z.array(entrySchema) },
    handle: ({ app, query }) => answerExport(app, query) }),
  endpoint({ method: "GET", path: "/api/admin/models", role: "member", about: "The current models: limits, endpoints, price, policy, accounts, unsupported fields.",
    response: z.object({ items: z.array(modelSchema) }),
    handle: async ({ app }) => ({ items: await modelItems(app) }) }),
  endpoint({ method: "GET", path: "/api/admin/cache", role: "member", about: "The upstream's prompt cache between `from_ms` (a week ago) and `to_ms`: share and savings by model, client and session, and turns that did not find their prompt.",
    query: queries.cache, response: cacheReportSchema,
    handle: ({ app, query: { from_ms = app.now() - 7 * dayMs, to_ms } }) => cacheReport(app, { from_ms, ...(to_ms === undefined ? {} : { to_ms }) }) }),
  endpoint({ method: "GET", path: "/api/admin/live", role: "member", about: "Running and finished requests as server-sent events: snapshot, running, finished; in a team of all servers, for a member the member's own. The stream ends with the key.",
    response: { "text/event-stream": liveEventSchema },
    handle: ({ app, request, member }) => answerLive(app, request, member === null ? undefined : keyPermit(app, request)) }),
  endpoint({ method: "POST", path: "/api/admin/live/:requestId/cancel", role: "member", about: "Ends a running request with an error for its client, on whichever server of a team it runs.",
    reads: emptyBody,
    response: z.object({ cancelled: z.literal(true) }), errors: ["not_found"],
    handle: ({ app, params }) => cancelRequest(app, params.requestId) }),
  ownerEndpoint({ method: "GET", path: "/api/admin/config", role: "owner", about: "The config: every key with masked secrets, and whether its value is stored or the default.",
    response: configAnswerSchema,
    handle: ({ app }) => showConfig(app) }),
  ownerEndpoint({ method: "POST", path: "/api/admin/config", role: "owner", about: "Changes the config file and takes effect at once: a JSON object of the keys to change.",
    reads: configPatchSchema, response: configAnswerSchema, errors: ["conflict"],
    handle: ({ app, request }) => changeConfig(app, request) }),
  endpoint({ method: "GET", path: "/api/admin/keys", role: "member", about: "The client keys: names, models, expiry and last use, never the keys.",
    response: keyListSchema,
    handle: ({ app }) => listKeys(app) }),
  endpoint({ method: "POST", path: "/api/admin/keys", role: "member", lasts: true, about: "Creates a client key, for a member one of their own. The response has the key, which is not stored and cannot be shown again.",
    body: newKeySchema, response: createdKeySchema, errors: ["conflict"],
    handle: ({ app, request, body }) => createClientKey(app, body, keySentTo(app, request)) }),
  endpoint({ method: "POST", path: "/api/admin/keys/:name/revoke", role: "member", about: "Revokes a client key, such as `laptop` or a member's `anna/laptop`: its next request is refused.",
    reads: emptyBody, response: z.object({ revoked: z.literal(true) }), errors: ["not_found"],
    handle: ({ app, params }) => revokeClientKey(app, params.name) }),
  ownerEndpoint({ method: "GET", path: "/api/admin/members", role: "owner", about: "The members of a team: limits, accounts, keys, open invitation, and what they used this month.",
    query: membersQuery, response: memberListSchema,
    handle: ({ app, query }) => listMembers(app, query) }),
  ownerEndpoint({ method: "POST", path: "/api/admin/members", role: "owner", about: "Invites a member, or gives one another link: `{\"name\"}`, and limits. The response has the link, which works once and cannot be shown again.",
    body: newMemberSchema, response: invitedSchema, errors: ["not_found"],
    handle: ({ app, body, request }) => inviteMember(app, body, browserUrl(request).origin) }),
  ownerEndpoint({ method: "GET", path: "/api/admin/members/:name", role: "owner", about: "One member, with the names of the keys.",
    response: memberDetailSchema, errors: ["not_found"],
    handle: ({ app, params }) => showMember(app, params.name) }),
  ownerEndpoint({ method: "POST", path: "/api/admin/members/:name/limits", role: "owner", about: "Changes what a member's keys may do, those that exist too; on every server within a second.",
    body: memberLimitsSchema, response: shownLimitsSchema, errors: ["not_found"],
    handle: ({ app, body, params }) => limitMember(app, params.name, body) }),
  ownerEndpoint({ method: "POST", path: "/api/admin/members/:name/withdraw", role: "owner", about: "Takes back a member's open invitation.",
    reads: emptyBody, response: z.object({ withdrawn: z.number().describe("How many were open.") }), errors: ["not_found"],
    handle: ({ app, params }) => withdrawInvitations(app, params.name) }),
  ownerEndpoint({ method: "POST", path: "/api/admin/members/:name/remove", role: "owner", about: "Removes a member: their keys are refused on every server within a second, and their accounts are signed out. Answers that run go on to their end.",
    reads: emptyBody, response: z.object({ removed: z.literal(true) }), errors: ["not_found"],
    handle: ({ app, params }) => dismissMember(app, params.name) }),
  ownerEndpoint({ method: "GET", path: "/api/admin/drift", role: "owner", about: "Names that Copilot sends and dragoman does not know: events, members, values, headers, error codes and model fields. Also what it no longer sends, and which numbers are unknown for it.",
    response: driftListSchema(),
    handle: ({ app }) => driftList(app.drift, app.losses) }),
  endpoint({ method: "GET", path: "/api/admin/budgets", role: "member", about: "The budgets: limits, what is used and reserved in this period, and when it ends. `holders` are the members, keys, accounts or projects that have an amount of their own, highest first; `budget`, `limit` and `offset` page through those of one.",
    query: queries.budgets, response: budgetListSchema,
    handle: async ({ app, query }) => ({ items: await listBudgets(app, query) }) }),
  ownerEndpoint({ method: "POST", path: "/api/admin/budgets", role: "owner", about: "Adds a budget to the config.",
    body: newBudgetSchema, response: z.object({ added: z.literal(true) }), errors: ["conflict"],
    handle: ({ app, body }) => addBudget(app, body) }),
  ownerEndpoint({ method: "POST", path: "/api/admin/budgets/remove", role: "owner", about: "Removes a budget from the config: `{\"name\"}`.",
    body: z.strictObject({ name: z.string() }), response: z.object({ removed: z.literal(true) }), errors: ["not_found", "conflict"],
    handle: ({ app, body: { name } }) => removeBudget(app, name) }),
  ownerEndpoint({ method: "POST", path: "/api/admin/notices/test", role: "owner", about: "Sends a test notice to every channel of the config.",
    reads: emptyBody,
    response: z.object({ faults: z.array(z.string()).describe("A sentence for each channel that failed.") }),
    handle: async ({ app }) => ({ faults: await app.notices.test() }) }),
  endpoint({ method: "GET", path: "/api/admin/openapi.json", role: "member", about: "All endpoints as an OpenAPI 3.1 document.",
    response: z.looseObject({ openapi: z.string(), paths: z.looseObject({}) }),
    handle: async ({ describeApi }) => Response.json(await describeApi(), { headers: { "cache-control": "no-store" } }) }),
];

/**
 * Answers the requests for the admin API. The guard runs before a 404 or 405, which would tell a stranger what exists.
 * @param callerOf The caller of a request, as it was checked before routing.
 * @param describeApi Makes the OpenAPI document of the whole server.
 */
export function adminAnswers(
  app: Server,
  callerOf: (request: Request) => Visitor,
  describeApi: () => Promise<object>,
  fail: Answers<AdminRoute>["fail"],
) {
  const admit = adminGuard(app);
  return matcherOf(adminRoutes, {
    answer(row, request, params) {
      const caller = callerOf(request);
      const member = admit(request, caller);
      if (member !== null && row.role === "owner") throw ownersAlone();
      caller.connection.keepOpen();
      if (row.method === "POST") requireJson(request);
      const requireStillAllowed = () => {
        if (admit(request, caller) !== member) throw keyGone();
      };
      const given = { member, request, caller, params: decodedParams(params), requireStillAllowed, describeApi };
      const scope = app.forMember(member);
      if (row.role === "member" && row.lasts) requireLasting(keySentTo(scope, request));
      return row.role === "owner" ? row.run({ ...given, app: scope.owner! }) : row.run({ ...given, app: scope });
    },
    miss(request, rows) {
      admit(request, callerOf(request));
      if (rows.length > 0) throw methodNotAllowed(request.method, methodsOf(rows));
      throw new ProxyError("not_found", "There is nothing here in the admin API.");
    },
    fail,
  });
}

const ownersAlone = () =>
  new ProxyError("permission", "Only the owner of this dragoman may do this.", { code: "owner_only" });

export const adminGroup: EndpointGroup = {
  endpoints: adminRoutes,
  security: ["adminToken", "bearer"],
  errors: ["authentication", "permission", "rate_limit"],
  errorAt: () => adminErrorSchema,
};
