/** Every client path in one table, each with who may call it and its handler. */
import { z } from "zod";
import {
  clientPaths,
  embeddingsPaths,
  gatewayPaths,
  geminiPath,
  metricsPath,
  modelsPath,
  probePaths,
  searchPath,
  telemetryPaths,
} from "../api-paths";
import type { Scope, Server } from "../app";
import type { Awaitable } from "../awaitable";
import type { ClientDialect } from "../dialects/hub/conversation";
import { type Endpoint, endpointsOf, readClientQuery } from "../endpoint";
import { ProxyError } from "../errors";
import type { KeyedCaller } from "../keys/client-keys";
import { methodsByPathOf } from "../matcher";
import type { EndpointGroup } from "../openapi";
import { embed } from "../relay/embed";
import { relay, relayToProvider } from "../relay/relay";
import { search } from "../relay/search";
import { listedModelSchema } from "../upstream/models/model-view";
import { requireClientKey, requireGoogleKey, requireMetricsAccess, requireSignIn, requireTokenAccess } from "./access";
import { compactConversation } from "./compact";
import { countForProvider, countTokens } from "./count-tokens";
import { isGoogleClient, refuseGoogleMethod } from "./google-paths";
import { getGoogleModel, getModel, listGoogleModels, listModels, listProviderModels } from "./models";
import {
  countSchema,
  dialectAnswer,
  dialectBody,
  embeddingsBody,
  frontSchema,
  googleBody,
  googleCountSchema,
  googleModelListSchema,
  googleModelSchema,
  googleModelsQuery,
  googleStream,
  googleStreamQuery,
  healthSchema,
  liveSchema,
  modelListSchema,
  modelsQuery,
  readySchema,
  searchAnswer,
  searchBody,
  tokenQuery,
  tokenSchema,
  usageDetailSchema,
  usageLineQuery,
  usageListSchema,
  usageParams,
} from "./schemas";
import { sessionLine } from "./session-line";
import { frontPage, health, live, metricsResponse, ready, toPages, wantsPage } from "./status";
import { accountUsage, accountUsageItem, token } from "./usage";
import { defaultLineFormat, usageLine } from "./usage-line";

/** What a handler of a client path gets. */
interface ClientContext {
  /** What the person may use whose key was sent. */
  app: Scope;
  request: Request;
  caller: KeyedCaller;
}

/** What the handler of a path gets that is about the server, whoever asks. */
interface ServerContext {
  server: Server;
  request: Request;
}

interface Access {
  /** @throws ProxyError when the caller may not use the path. */
  authorize(server: Server, request: Request, caller: KeyedCaller): Awaitable<void>;
  /** Pages of the config's `allowedOrigins` may use it. */
  forPages?: boolean;
  /** Tools ask it at the address that they have, which may be a project's. */
  forProjects?: boolean;
  /** Answered while running requests end, too. */
  whileStopping?: boolean;
}

interface Columns {
  /** Who may ask. */
  access: Access;
  /** In which its errors are written. */
  dialect: ClientDialect;
}

export type ClientRoute = Endpoint<ClientContext & ServerContext, Columns>;

const endpoint = endpointsOf<ClientContext, Columns>({}, readClientQuery);
const signInEndpoint = endpointsOf<ServerContext & Pick<ClientContext, "caller">, Columns>({}, readClientQuery);
const serverEndpoint = endpointsOf<ServerContext, Columns>({}, readClientQuery);

const models: Access = { authorize: requireClientKey, forPages: true, forProjects: true };
const googleModels: Access = { ...models, authorize: requireGoogleKey };
const usage: Access = { authorize: requireClientKey };
const ofTools: Access = { ...usage, forProjects: true };
const copilotTokenAccess: Access = { authorize: requireTokenAccess };
const everybody: Access = { authorize: () => {} };
const signIn: Access = { authorize: requireSignIn };
const probes: Access = { ...everybody, whileStopping: true };
const metrics: Access = { authorize: requireMetricsAccess, whileStopping: true };

/** Errors of every call that needs an account or a provider. A retry does not help after `unable`. */
const upstreamErrors = ["unable", "rate_limit", "upstream", "no_account", "timeout"] as const;

const relayed = { reads: dialectBody, response: dialectAnswer, errors: upstreamErrors };

const references = {
  chat: "https://platform.openai.com/docs/api-reference/chat/create",
  responses: "https://platform.openai.com/docs/api-reference/responses/create",
  compact: "https://platform.openai.com/docs/api-reference/responses/compact",
  socket: "https://developers.openai.com/api/docs/guides/websocket-mode",
  embeddings: "https://platform.openai.com/docs/api-reference/embeddings/create",
  messages: "https://docs.claude.com/en/api/messages",
  gemini: "https://ai.google.dev/api/generate-content",
};

const lineResponse = (line: string) =>
  new Response(`${line}\n`, { headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" } });

/** After a 426, Codex falls back to POST at once; after any other answer it keeps trying. */
async function openSocket({ app, request, caller }: ClientContext): Promise<Response> {
  const useHttp = "Send the request as POST to the same path.";
  if (!/^websocket$/i.test(request.headers.get("upgrade") ?? "")) {
    // A proxy on the way passes on the handshake without the header that belongs to the connection.
    const isLost = request.headers.has("sec-websocket-key");
    throw isLost
      ? new ProxyError("upgrade_required", `A proxy on the way removed the Upgrade header. ${useHttp}`)
      : new ProxyError("method_not_allowed", `Only a WebSocket can be opened with GET here. ${useHttp}`);
  }
  const { responsesSocket } = await import("./responses-socket");
  const member = caller.key?.member ?? null;
  const isOpen =
    !app.sockets.isFullFor(member) &&
    caller.connection.upgrade((answer) => responsesSocket(app, request, member, answer));
  if (!isOpen) throw new ProxyError("upgrade_required", `No WebSocket can be opened now. ${useHttp}`);
  // The connection is no longer HTTP: nothing reads this.
  return new Response(null, { status: 204 });
}

/** Loaded with the first request for it. */
const gateway = () => import("./gateway");
const oauthForm = (names: readonly string[]) => () => ({
  "application/x-www-form-urlencoded": z.looseObject(
    Object.fromEntries(names.map((name) => [name, z.string().optional()])),
  ),
});
const otlpBody = () => ({ "application/json": z.looseObject({}), "application/x-protobuf": z.string() });
const gatewayReference = "https://www.rfc-editor.org/rfc/rfc8628";

// biome-ignore format: a table
export const routes: ClientRoute[] = [
  endpoint({ method: "POST", path: clientPaths.chat, access: models, dialect: "chat", about: "Chat completions, full or streamed.",
    ...relayed, reference: references.chat,
    handle: ({ app, request, caller }) => relay(app, request, caller, "chat") }),
  endpoint({ method: "POST", path: clientPaths.responses, access: models, dialect: "responses", about: "Responses, full or streamed.",
    ...relayed, reference: references.responses,
    handle: ({ app, request, caller }) => relay(app, request, caller, "responses") }),
  endpoint({ method: "GET", path: clientPaths.responses, access: models, dialect: "responses", about: "Responses over a WebSocket: a message for each request, and one for each event.",
    errors: ["upgrade_required", "method_not_allowed"], reference: references.socket,
    handle: openSocket }),
  endpoint({ method: "POST", path: `${clientPaths.responses}/compact`, access: models, dialect: "responses", about: "A conversation in short: the newest messages of the user, and a summary that the model writes.",
    reads: dialectBody, response: () => z.looseObject({}), errors: upstreamErrors, reference: references.compact,
    handle: ({ app, request, caller }) => compactConversation(app, request, caller) }),
  endpoint({ method: "POST", path: searchPath, access: models, dialect: "responses", about: "Web searches for Codex: its commands are answered with one text.",
    reads: searchBody, response: searchAnswer, errors: ["rate_limit"],
    handle: ({ app, request, caller }) => search(app, request, caller) }),
  endpoint({ method: "POST", path: clientPaths.messages, access: models, dialect: "messages", about: "Messages, full or streamed.",
    ...relayed, reference: references.messages,
    handle: ({ app, request, caller }) => relay(app, request, caller, "messages") }),
  endpoint({ method: "POST", path: "/v1/messages/count_tokens", access: models, dialect: "messages", about: "Input tokens of a messages request: exact with an Anthropic key or where GitHub Copilot counts them, otherwise with the factor learned for the model, or estimated; `x-token-count` says which.",
    reads: dialectBody, response: countSchema,
    handle: ({ app, request, caller }) => countTokens(app, request, caller, "messages") }),
  endpoint({ method: "POST", path: embeddingsPaths.client, access: models, dialect: "chat", about: "Embeddings of a text or an array of texts, as floats or base64.",
    reads: embeddingsBody, response: () => z.looseObject({}), errors: upstreamErrors, reference: references.embeddings,
    handle: ({ app, request, caller }) => embed(app, request, caller) }),
  endpoint({ method: "GET", path: modelsPath, access: models, dialect: "chat", about: "The models your accounts can use now, with limits and endpoints; `x-model-list: stale` if the upstream does not answer and this is its last list. Google's clients get Google's format; Claude Code gets names that it takes, and Codex its own form.",
    query: modelsQuery, response: modelListSchema, errors: upstreamErrors,
    handle: ({ app, request, caller, query }) => isGoogleClient(request) ? listGoogleModels(app, caller.key, readClientQuery(request.url, googleModelsQuery())) : listModels(app, request, caller.key, query) }),
  endpoint({ method: "GET", path: `${modelsPath}/:id`, access: models, dialect: "chat", about: "One model. The id may have any form that a request may use.",
    response: listedModelSchema, errors: ["not_found", ...upstreamErrors],
    handle: ({ app, request, caller, params }) => { refuseGoogleMethod(googleRows(), "GET", params.id); return (isGoogleClient(request) ? getGoogleModel : getModel)(app, caller.key, params.id); } }),
  endpoint({ method: "POST", path: "/:provider/v1/messages", access: models, dialect: "messages", about: "Messages of a provider that offers the Messages API, full or streamed, passed through as they are.",
    ...relayed, errors: ["not_found", ...upstreamErrors], reference: references.messages,
    handle: ({ app, request, caller, params }) => relayToProvider(app, request, caller, params.provider) }),
  endpoint({ method: "POST", path: "/:provider/v1/messages/count_tokens", access: models, dialect: "messages", about: "Input tokens of a messages request, always estimated here.",
    reads: dialectBody, response: countSchema, errors: ["not_found"],
    handle: ({ app, request, caller, params }) => countForProvider(app, request, caller, params.provider) }),
  endpoint({ method: "GET", path: "/:provider/v1/models", access: models, dialect: "messages", about: "The provider's own model list.",
    response: () => z.looseObject({}), errors: ["not_found", ...upstreamErrors],
    handle: ({ app, request, caller, params }) => listProviderModels(app, request, caller.key, params.provider) }),
  endpoint({ method: "POST", path: `${geminiPath}/:model:generateContent`, access: googleModels, dialect: "gemini", about: "An answer in Google's format.",
    reads: googleBody, response: () => z.looseObject({}), errors: ["not_found", ...upstreamErrors], reference: references.gemini,
    handle: ({ app, request, caller, params: { model } }) => relay(app, request, caller, "gemini", { model, stream: false }) }),
  endpoint({ method: "POST", path: `${geminiPath}/:model:streamGenerateContent`, access: googleModels, dialect: "gemini", about: "The same, streamed: as server-sent events with `?alt=sse`, otherwise as one JSON array.",
    query: googleStreamQuery, reads: googleBody, response: googleStream, errors: ["not_found", ...upstreamErrors], reference: references.gemini,
    handle: ({ app, request, caller, params: { model }, query: { alt } }) => relay(app, request, caller, "gemini", { model, stream: true, alt }) }),
  endpoint({ method: "POST", path: `${geminiPath}/:model:countTokens`, access: googleModels, dialect: "gemini", about: "Input tokens of contents, or of a whole request: with the factor learned for the model, or estimated; `x-token-count` says which.",
    reads: googleBody, response: googleCountSchema,
    handle: ({ app, request, caller, params: { model } }) => countTokens(app, request, caller, "gemini", { model }) }),
  endpoint({ method: "GET", path: geminiPath, access: googleModels, dialect: "gemini", about: "The models your accounts can use now, in Google's format.",
    query: googleModelsQuery, response: googleModelListSchema, errors: upstreamErrors,
    handle: ({ app, caller, query }) => listGoogleModels(app, caller.key, query) }),
  endpoint({ method: "GET", path: `${geminiPath}/:model`, access: googleModels, dialect: "gemini", about: "One model in Google's format.",
    response: googleModelSchema, errors: ["not_found", ...upstreamErrors],
    handle: ({ app, caller, params }) => getGoogleModel(app, caller.key, params.model) }),
  endpoint({ method: "GET", path: "/usage", access: usage, dialect: "chat", about: "The remaining quota and the state of each account.",
    response: usageListSchema,
    handle: ({ app }) => accountUsageItem(app.accounts) }),
  endpoint({ method: "GET", path: "/usage/line", access: ofTools, dialect: "chat", about: "The usage of the accounts as one line of text, for status bars; with `session`, what this session and its last prompt cost, and how long the cache keeps it; `format` has the fields {account}, {remaining}, {entitlement}, {used}, {percent}, {unit}, {state} and {reset}.",
    query: usageLineQuery, response: () => ({ "text/plain": z.string() }),
    handle: async ({ app, query: { session, format = defaultLineFormat } }) => {
      const left = usageLine((await accountUsageItem(app.accounts)).accounts, format, app.now());
      return lineResponse(session === undefined ? left : await sessionLine(app, session, left, app.now()));
    } }),
  endpoint({ method: "GET", path: "/usage/:accountIndex", access: usage, dialect: "chat", about: "One account, counted from 0, with GitHub's own `quota_snapshots`.",
    params: usageParams, response: usageDetailSchema, errors: ["not_found"],
    handle: ({ app, params }) => accountUsage(app, params.accountIndex) }),
  endpoint({ method: "GET", path: "/token", access: copilotTokenAccess, dialect: "chat", about: "The current Copilot token and its expiry (seconds since 1970); `?account=<index>` for another account. A GitHub token that is used directly is never shown: 409.",
    query: tokenQuery, response: tokenSchema, errors: ["not_found", "conflict", ...upstreamErrors],
    handle: ({ app, query }) => token(app, query.account) }),
  signInEndpoint({ method: "GET", path: gatewayPaths.discovery, access: signIn, dialect: "chat", about: "Where tools sign in as a member of a team: metadata of an authorization server (RFC 8414).",
    response: () => z.looseObject({ issuer: z.string() }), errors: ["not_found", "permission"],
    handle: async (context) => (await gateway()).discovery(context) }),
  signInEndpoint({ method: "POST", path: gatewayPaths.device, access: signIn, dialect: "chat", about: "Begins the sign-in of a tool (RFC 8628): a code that a member confirms on a page. The form may have `surface`, a name for the tool.",
    reads: oauthForm(["surface"]), response: () => z.looseObject({ device_code: z.string(), user_code: z.string() }), errors: ["not_found", "rate_limit", "permission"], reference: gatewayReference,
    handle: async (context) => (await gateway()).beginLogin(context) }),
  signInEndpoint({ method: "POST", path: gatewayPaths.token, access: signIn, dialect: "chat", about: "The short-lived key of a sign-in that was confirmed, or another one for a refresh token. A removed member gets 401 with `invalid_grant`.",
    reads: oauthForm(["grant_type", "device_code", "refresh_token"]), response: () => z.looseObject({ access_token: z.string() }), errors: ["not_found", "rate_limit", "permission"], reference: gatewayReference,
    handle: async (context) => (await gateway()).giveTokens(context) }),
  signInEndpoint({ method: "POST", path: gatewayPaths.revoke, access: signIn, dialect: "chat", about: "Signs a tool out: its key is revoked (RFC 7009).",
    reads: oauthForm(["token"]), errors: ["not_found", "permission"],
    handle: async (context) => (await gateway()).endLogin(context) }),
  endpoint({ method: "GET", path: gatewayPaths.settings, access: usage, dialect: "messages", about: "The settings of Claude Code for the member, with an `ETag`: models, what budgets allow, and `claudeCodeSettings` of the config.",
    response: () => z.looseObject({ uuid: z.string(), checksum: z.string(), settings: z.looseObject({}) }),
    handle: async (context) => (await gateway()).managedSettings(context) }),
  endpoint({ method: "GET", path: gatewayPaths.usage, access: usage, dialect: "messages", about: "For Claude Code's `/usage`: what a member has used of the budget in AI credits of which the largest share is used, in US cents; 404 without one.",
    response: () => z.looseObject({ extra_usage: z.looseObject({}), limits: z.array(z.looseObject({})) }), errors: ["not_found"],
    handle: async (context) => (await gateway()).budgetUsage(context) }),
  ...Object.entries(telemetryPaths).map(([kind, path]) => endpoint({ method: "POST", path, access: ofTools, dialect: "messages", about: `Takes the ${kind} of a client (OTLP). They are counted, and not kept.`,
    reads: otlpBody, response: () => z.looseObject({}),
    handle: async (context) => (await gateway()).takeTelemetry(context, kind) })),
  serverEndpoint({ method: "GET", path: "/", access: everybody, dialect: "chat", about: "Name, version and endpoints. A browser, which asks for HTML, is sent to `/admin`.",
    response: frontSchema,
    handle: ({ server, request }) => wantsPage(request) ? toPages() : frontPage(server, [...methodsByPath().keys()]) }),
  serverEndpoint({ method: "GET", path: "/health", access: probes, dialect: "chat", about: "Whether requests are accepted, and the state of the accounts and the history.",
    response: healthSchema,
    handle: ({ server }) => health(server) }),
  serverEndpoint({ method: "GET", path: probePaths.live, access: probes, dialect: "chat", about: "Whether the process answers.",
    response: liveSchema,
    handle: ({ server }) => live(server) }),
  serverEndpoint({ method: "GET", path: probePaths.ready, access: probes, dialect: "chat", about: "Whether new requests should come here; `degraded` names what does not work all the same.",
    response: readySchema, otherAnswers: () => ({ 503: { about: "Running requests end, the database has been away for too long, or the config has an error.", response: readySchema() } }),
    handle: ({ server }) => ready(server) }),
  serverEndpoint({ method: "GET", path: metricsPath, access: metrics, dialect: "chat", about: "Metrics for Prometheus. From another machine with `DRAGOMAN_METRICS_TOKEN` or `ADMIN_TOKEN`, as `Authorization: Bearer <token>`.",
    response: () => ({ "text/plain": z.string() }), errors: ["rate_limit"],
    handle: ({ server }) => metricsResponse(server) }),
];

export const clientGroup: Omit<EndpointGroup, "errorAt"> = {
  endpoints: routes,
  security: ["clientKey", "bearer"],
  errors: ["authentication", "permission"],
};

export const googleRows = () => routes.filter(({ path }) => path.startsWith(`${geminiPath}/`));

/** The methods of each client path. GET implies HEAD. */
export const methodsByPath = () => methodsByPathOf(routes);
