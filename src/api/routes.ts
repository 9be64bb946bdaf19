/** Every client path in one table, each with who may call it and its handler. */
import { Elysia } from "elysia";
import { z } from "zod";
import {
  clientPaths,
  embeddingsPaths,
  geminiAlphaPath,
  geminiPath,
  metricsPath,
  modelsPath,
  probePaths,
  searchPath,
} from "../api-paths";
import type { App } from "../app";
import { openaiEmbeddings } from "../dialects/embeddings";
import { batchEmbedContents, embedContent } from "../dialects/gemini/embeddings";
import { type Endpoint, endpointsOf, methodsByPathOf, readClientQuery } from "../endpoint";
import { ProxyError } from "../errors";
import type { KeyedCaller } from "../keys/client-keys";
import { lazy } from "../lazy";
import type { Visitor } from "../net/guard";
import { decodedParams } from "../net/params";
import type { EndpointGroup } from "../openapi";
import { embed } from "../relay/embed";
import { relayToProvider } from "../relay/provider";
import { relay } from "../relay/relay";
import { search } from "../relay/search";
import { listedModelSchema } from "../upstream/model-view";
import { requireClientKey, requireGoogleKey, requireMetricsAccess, requireTokenAccess } from "./access";
import { compactConversation } from "./compact";
import { countForProvider, countTokens } from "./count-tokens";
import { findGoogleRow, isGoogleClient, refuseGoogleMethod, routerPath } from "./google-paths";
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
import { frontPage, health, live, metricsResponse, ready, toPages, wantsPage } from "./status";
import { accountUsage, accountUsageItem, token } from "./usage";
import { defaultLineFormat, usageLine } from "./usage-line";

/** What a handler of a client path gets. */
interface ClientContext {
  app: App;
  request: Request;
  caller: KeyedCaller;
}

interface ClientRoute extends Endpoint<ClientContext> {
  /** @throws ProxyError when the caller may not use the path. */
  authorize: (app: App, request: Request, caller: KeyedCaller) => void;
}

const endpoint = endpointsOf<ClientContext>({}, readClientQuery);

/** What an endpoint reads and answers is made when it is needed, so it is not copied. */
const guarded = (authorize: ClientRoute["authorize"], route: Endpoint<ClientContext>): ClientRoute =>
  Object.assign(route, { authorize });

const allowAll = () => {};

/** Errors of every call that needs an account or a provider. A retry does not help after `unable`. */
const upstreamErrors = ["unable", "rate_limit", "upstream", "no_account", "timeout"] as const;

const dialect = { reads: dialectBody, response: dialectAnswer, errors: upstreamErrors };

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

// biome-ignore format: a table
export const routes: ClientRoute[] = [
  guarded(requireClientKey, endpoint({ method: "POST", path: clientPaths.chat, about: "Chat completions, full or streamed.",
    ...dialect, reference: references.chat,
    handle: ({ app, request, caller }) => relay(app, request, caller, "chat") })),
  guarded(requireClientKey, endpoint({ method: "POST", path: clientPaths.responses, about: "Responses, full or streamed.",
    ...dialect, reference: references.responses,
    handle: ({ app, request, caller }) => relay(app, request, caller, "responses") })),
  guarded(requireClientKey, endpoint({ method: "GET", path: clientPaths.responses, about: "Responses over a WebSocket: a message for each request, and one for each event.",
    errors: ["upgrade_required", "method_not_allowed"], reference: references.socket,
    handle: openSocket })),
  guarded(requireClientKey, endpoint({ method: "POST", path: `${clientPaths.responses}/compact`, about: "A conversation in short: the newest messages of the user, and a summary that the model writes.",
    reads: dialectBody, response: () => z.looseObject({}), errors: upstreamErrors, reference: references.compact,
    handle: ({ app, request, caller }) => compactConversation(app, request, caller) })),
  guarded(requireClientKey, endpoint({ method: "POST", path: searchPath, about: "Web searches for Codex: its commands are answered with one text.",
    reads: searchBody, response: searchAnswer, errors: ["rate_limit"],
    handle: ({ app, request, caller }) => search(app, request, caller) })),
  guarded(requireClientKey, endpoint({ method: "POST", path: clientPaths.messages, about: "Messages, full or streamed.",
    ...dialect, reference: references.messages,
    handle: ({ app, request, caller }) => relay(app, request, caller, "messages") })),
  guarded(requireClientKey, endpoint({ method: "POST", path: "/v1/messages/count_tokens", about: "Input tokens of a messages request: exact with an Anthropic key or where GitHub Copilot counts them, otherwise with the factor learned for the model, or estimated; `x-token-count` says which.",
    reads: dialectBody, response: countSchema,
    handle: ({ app, request, caller }) => countTokens(app, request, caller, "messages") })),
  guarded(requireClientKey, endpoint({ method: "POST", path: embeddingsPaths.client, about: "Embeddings of a text or an array of texts, as floats or base64.",
    reads: embeddingsBody, response: () => z.looseObject({}), errors: upstreamErrors, reference: references.embeddings,
    handle: ({ app, request, caller }) => embed(app, request, caller, openaiEmbeddings) })),
  guarded(requireClientKey, endpoint({ method: "GET", path: modelsPath, about: "The models your accounts can use now, with limits and endpoints; `x-model-list: stale` if the upstream does not answer and this is its last list. Google's clients get Google's format.",
    query: modelsQuery, response: modelListSchema, errors: upstreamErrors,
    handle: ({ app, request, caller, query }) => isGoogleClient(request) ? listGoogleModels(app, caller.key, readClientQuery(request.url, googleModelsQuery())) : listModels(app, caller.key, query) })),
  guarded(requireClientKey, endpoint({ method: "GET", path: `${modelsPath}/:id`, about: "One model. The id may have any form that a request may use.",
    response: listedModelSchema, errors: ["not_found", ...upstreamErrors],
    handle: ({ app, request, caller, params }) => { refuseGoogleMethod(googleRows(), "GET", params.id); return (isGoogleClient(request) ? getGoogleModel : getModel)(app, caller.key, params.id); } })),
  guarded(requireClientKey, endpoint({ method: "POST", path: "/:provider/v1/messages", about: "Messages of a provider that offers the Messages API, full or streamed, passed through as they are.",
    ...dialect, errors: ["not_found", ...upstreamErrors], reference: references.messages,
    handle: ({ app, request, caller, params }) => relayToProvider(app, request, caller, params.provider) })),
  guarded(requireClientKey, endpoint({ method: "POST", path: "/:provider/v1/messages/count_tokens", about: "Input tokens of a messages request, always estimated here.",
    reads: dialectBody, response: countSchema, errors: ["not_found"],
    handle: ({ app, request, caller, params }) => countForProvider(app, request, caller, params.provider) })),
  guarded(requireClientKey, endpoint({ method: "GET", path: "/:provider/v1/models", about: "The provider's own model list.",
    response: () => z.looseObject({}), errors: ["not_found", ...upstreamErrors],
    handle: ({ app, request, caller, params }) => listProviderModels(app, request, caller.key, params.provider) })),
  guarded(requireGoogleKey, endpoint({ method: "POST", path: `${geminiPath}/:model:generateContent`, about: "An answer in Google's format.",
    reads: googleBody, response: () => z.looseObject({}), errors: ["not_found", ...upstreamErrors], reference: references.gemini,
    handle: ({ app, request, caller, params: { model } }) => relay(app, request, caller, "gemini", { model, stream: false }) })),
  guarded(requireGoogleKey, endpoint({ method: "POST", path: `${geminiPath}/:model:streamGenerateContent`, about: "The same, streamed: as server-sent events with `?alt=sse`, otherwise as one JSON array.",
    query: googleStreamQuery, reads: googleBody, response: googleStream, errors: ["not_found", ...upstreamErrors], reference: references.gemini,
    handle: ({ app, request, caller, params: { model }, query: { alt } }) => relay(app, request, caller, "gemini", { model, stream: true, alt }) })),
  guarded(requireGoogleKey, endpoint({ method: "POST", path: `${geminiPath}/:model:countTokens`, about: "Input tokens of contents, or of a whole request: with the factor learned for the model, or estimated; `x-token-count` says which.",
    reads: googleBody, response: googleCountSchema,
    handle: ({ app, request, caller, params: { model } }) => countTokens(app, request, caller, "gemini", { model }) })),
  guarded(requireGoogleKey, endpoint({ method: "POST", path: `${geminiPath}/:model:embedContent`, about: "The embedding of one content in Google's format.",
    reads: googleBody, response: () => z.looseObject({}), errors: ["not_found", ...upstreamErrors],
    handle: ({ app, request, caller, params: { model } }) => embed(app, request, caller, embedContent, { model }) })),
  guarded(requireGoogleKey, endpoint({ method: "POST", path: `${geminiPath}/:model:batchEmbedContents`, about: "The embeddings of several contents in Google's format.",
    reads: googleBody, response: () => z.looseObject({}), errors: ["not_found", ...upstreamErrors],
    handle: ({ app, request, caller, params: { model } }) => embed(app, request, caller, batchEmbedContents, { model }) })),
  guarded(requireGoogleKey, endpoint({ method: "GET", path: geminiPath, about: "The models your accounts can use now, in Google's format.",
    query: googleModelsQuery, response: googleModelListSchema, errors: upstreamErrors,
    handle: ({ app, caller, query }) => listGoogleModels(app, caller.key, query) })),
  guarded(requireGoogleKey, endpoint({ method: "GET", path: `${geminiPath}/:model`, about: "One model in Google's format.",
    response: googleModelSchema, errors: ["not_found", ...upstreamErrors],
    handle: ({ app, caller, params }) => getGoogleModel(app, caller.key, params.model) })),
  guarded(requireClientKey, endpoint({ method: "GET", path: "/usage", about: "The remaining quota and the state of each account.",
    response: usageListSchema,
    handle: ({ app }) => accountUsageItem(app.accounts) })),
  guarded(requireClientKey, endpoint({ method: "GET", path: "/usage/line", about: "The usage of the accounts as one line of text, for status bars; `format` has the fields {account}, {remaining}, {entitlement}, {used}, {percent}, {unit}, {state} and {reset}.",
    query: usageLineQuery, response: () => ({ "text/plain": z.string() }),
    handle: async ({ app, query }) => lineResponse(usageLine((await accountUsageItem(app.accounts)).accounts, query.format ?? defaultLineFormat, app.now())) })),
  guarded(requireClientKey, endpoint({ method: "GET", path: "/usage/:accountIndex", about: "One account, counted from 0, with GitHub's own `quota_snapshots`.",
    params: usageParams, response: usageDetailSchema, errors: ["not_found"],
    handle: ({ app, params }) => accountUsage(app, params.accountIndex) })),
  guarded(requireTokenAccess, endpoint({ method: "GET", path: "/token", about: "The current upstream token and its expiry (seconds since 1970); `?account=<index>` for another account. A GitHub token that is used directly is never shown: 409.",
    query: tokenQuery, response: tokenSchema, errors: ["not_found", "conflict", ...upstreamErrors],
    handle: ({ app, query }) => token(app, query.account) })),
  guarded(allowAll, endpoint({ method: "GET", path: "/", about: "Name, version and endpoints. A browser, which asks for HTML, is sent to `/admin`.",
    response: frontSchema,
    handle: ({ app, request }) => wantsPage(request) ? toPages() : frontPage(app, [...methodsByPath().keys()]) })),
  guarded(allowAll, endpoint({ method: "GET", path: "/health", about: "Whether requests are accepted, and the state of the accounts and the history.",
    response: healthSchema,
    handle: ({ app }) => health(app) })),
  guarded(allowAll, endpoint({ method: "GET", path: probePaths.live, about: "Whether the process answers.",
    response: liveSchema,
    handle: ({ app }) => live(app) })),
  guarded(allowAll, endpoint({ method: "GET", path: probePaths.ready, about: "Whether new requests should come here; `degraded` names what does not work all the same.",
    response: readySchema, otherAnswers: () => ({ 503: { about: "Running requests end, the database has been away for too long, or the config has an error.", response: readySchema() } }),
    handle: ({ app }) => ready(app) })),
  guarded(requireMetricsAccess, endpoint({ method: "GET", path: metricsPath, about: "Metrics for Prometheus. From another machine with `DRAGOMAN_METRICS_TOKEN` or `ADMIN_TOKEN`, as `Authorization: Bearer <token>`.",
    response: () => ({ "text/plain": z.string() }), errors: ["rate_limit"],
    handle: ({ app }) => metricsResponse(app) })),
];

export const clientGroup: Omit<EndpointGroup, "errorAt"> = {
  endpoints: routes,
  security: ["clientKey", "bearer"],
  errors: ["authentication", "permission"],
};

const isGoogleMethod = (path: string) => path.startsWith(`${geminiPath}/:model:`);

/** Base URLs may lack the `/v1`. For messages it may be there twice: Claude Code would blame the model for the 404. */
const spellings = (path: string) => {
  if (path.startsWith(geminiPath))
    return [geminiPath, geminiAlphaPath, ...(isGoogleMethod(path) ? [modelsPath] : [])].map((base) =>
      path.replace(geminiPath, base),
    );
  if (!path.startsWith("/v1/")) return [path];
  const twice = path.startsWith(clientPaths.messages) ? [`/v1${path}`] : [];
  return [path, path.slice("/v1".length), ...twice];
};

/** A served path that a wrong one may stand for; undefined if there is none. */
export function nearestPath(path: string): string | undefined {
  const bare = path.replace(/\/+$/, "").replace(/^(?:\/(?:v1|api|openai|anthropic))+(?=\/)/, "");
  return ["/v1", geminiPath.replace("/models", "")]
    .map((version) => version + bare)
    .find((each) => each !== path && methodsAt(each) !== undefined);
}

/** A handler sees the accounts of the person whose key was sent, and no others. */
const appOf = (app: App, { key }: KeyedCaller): App => app.forMember(key?.member ?? null);

/** @param callerOf The caller of a request, as it was checked before routing. */
export function clientRoutes(app: App, callerOf: (request: Request) => Visitor) {
  const plugin = new Elysia({ name: "api" });
  for (const { method, path, authorize, run } of routes.filter(({ path }) => routerPath(path) === path))
    for (const spelling of spellings(path))
      plugin.route(
        method,
        spelling,
        // Elysia reads a handler's source to find the fields it needs, so the parameter names them.
        ({ request, params }) => {
          const caller: KeyedCaller = callerOf(request);
          authorize(app, request, caller);
          return run({ app: appOf(app, caller), request, caller, params: decodedParams(params) });
        },
        { parse: "none" },
      );
  for (const [method, base] of [
    ["GET", geminiPath],
    ["POST", geminiPath],
    ["GET", geminiAlphaPath],
    ["POST", geminiAlphaPath],
    ["POST", modelsPath],
  ] as const)
    plugin.route(
      method,
      `${base}/*`,
      ({ request, params }) => {
        const caller: KeyedCaller = callerOf(request);
        requireGoogleKey(app, request, caller);
        const { row, model } = findGoogleRow(googleRows(), method, params["*"] ?? "");
        return row.run({ app: appOf(app, caller), request, caller, params: { model } });
      },
      { parse: "none" },
    );
  return plugin;
}

const googleRows = () => routes.filter(({ path }) => path.startsWith(`${geminiPath}/`));

/** The methods of each client path. GET implies HEAD. */
export const methodsByPath = () => methodsByPathOf(routes);

/** The methods of a path as a client sends it; undefined if there is no such path. */
export function methodsAt(path: string): string[] | undefined {
  const { exact, patterns } = pathForms();
  return exact.get(path) ?? patterns.find(([pattern]) => pattern.test(path))?.[1];
}

/** Only those who ask with a wrong method need them. */
const pathForms = lazy(() => {
  const all = Array.from(methodsByPath()).flatMap(([path, methods]) =>
    spellings(path).map((spelling) => [spelling, methods] as const),
  );
  // What ends in a method of Google's comes before what takes it for a part of the model's name.
  const ordered = all.toSorted(([one], [other]) => Number(isGoogleMethod(other)) - Number(isGoogleMethod(one)));
  return { exact: new Map(all), patterns: ordered.map(([path, methods]) => [patternOf(path), methods] as const) };
});

/** A model of Google's paths may have slashes. */
const patternOf = (path: string) => new RegExp(`^${path.replace("/:model", "/.+").replace(/\/:\w+/g, "/[^/]+")}$`);
