/** Every client path on one page, each with who may call it and its handler. */
import { Elysia } from "elysia";
import type { App } from "../app";
import { ProxyError } from "../errors";
import type { Visitor } from "../net/guard";
import { decodedParams } from "../net/params";
import { embed } from "../relay/embed";
import { relayToProvider } from "../relay/provider";
import { relay } from "../relay/relay";
import { requireClientKey, requireTokenAccess } from "./access";
import { countForProvider, countTokens } from "./count-tokens";
import { getModel, listModels, listProviderModels } from "./models";
import { frontPage, health } from "./status";
import { accountUsage, listUsage, token } from "./usage";

interface Visit {
  app: App;
  request: Request;
  caller: Visitor;
  params: Record<string, string>;
}

interface Route {
  method: "GET" | "POST";
  path: string;
  admit: (app: App, request: Request, caller: Visitor) => void;
  handle: (visit: Visit) => Response | Promise<Response>;
  /** For the README. */
  about: string;
}

const everyone = () => {};

/** Codex opens a WebSocket first: after a 426 it falls back at once, after anything else it tries on. */
function declineUpgrade({ request }: Visit): Response {
  const wanted = /websocket/i.test(request.headers.get("upgrade") ?? "");
  throw new ProxyError(
    wanted ? "upgrade_required" : "method_not_allowed",
    "Responses are served over HTTP: send the request as POST /v1/responses.",
  );
}

// biome-ignore format: a table
export const routes: Route[] = [
  { method: "POST", path: "/v1/chat/completions", admit: requireClientKey, about: "Chat completions, full or streamed.",
    handle: ({ app, request, caller }) => relay(app, request, caller, "chat") },
  { method: "POST", path: "/v1/responses", admit: requireClientKey, about: "Responses, full or streamed.",
    handle: ({ app, request, caller }) => relay(app, request, caller, "responses") },
  { method: "GET", path: "/v1/responses", admit: requireClientKey, about: "A WebSocket is declined with 426, so that clients fall back to POST at once.",
    handle: declineUpgrade },
  { method: "POST", path: "/v1/messages", admit: requireClientKey, about: "Messages, full or streamed.",
    handle: ({ app, request, caller }) => relay(app, request, caller, "messages") },
  { method: "POST", path: "/v1/messages/count_tokens", admit: requireClientKey, about: "Input tokens of a messages request: exact with an Anthropic key, else an estimate.",
    handle: ({ app, request, caller }) => countTokens(app, request, caller) },
  { method: "POST", path: "/v1/embeddings", admit: requireClientKey, about: "Embeddings of a text or an array of texts, as floats or base64.",
    handle: ({ app, request, caller }) => embed(app, request, caller) },
  { method: "GET", path: "/v1/models", admit: requireClientKey, about: "The models your accounts can use now, with limits and endpoints; `x-model-list: stale` when the upstream does not answer and this is its last list.",
    handle: ({ app, request }) => listModels(app, request) },
  { method: "GET", path: "/v1/models/:id", admit: requireClientKey, about: "One model, in any spelling of its id.",
    handle: ({ app, params }) => getModel(app, params.id ?? "") },
  { method: "POST", path: "/:provider/v1/messages", admit: requireClientKey, about: "Messages of a configured provider, full or streamed, passed through as they are.",
    handle: ({ app, request, caller, params }) => relayToProvider(app, request, caller, params.provider ?? "") },
  { method: "POST", path: "/:provider/v1/messages/count_tokens", admit: requireClientKey, about: "Input tokens of a messages request, always estimated here.",
    handle: ({ app, request, caller, params }) => countForProvider(app, request, caller, params.provider ?? "") },
  { method: "GET", path: "/:provider/v1/models", admit: requireClientKey, about: "The provider's own model list.",
    handle: ({ app, request, params }) => listProviderModels(app, request, params.provider ?? "") },
  { method: "GET", path: "/usage", admit: requireClientKey, about: "What is left of each account's quota, and how each account is.",
    handle: ({ app }) => listUsage(app) },
  { method: "GET", path: "/usage/:accountIndex", admit: requireClientKey, about: "One account, counted from 0, with GitHub's own `quota_snapshots`.",
    handle: ({ app, params }) => accountUsage(app, params.accountIndex ?? "") },
  { method: "GET", path: "/token", admit: requireTokenAccess, about: "The upstream token now in use and when it expires (seconds since 1970); `?account=<index>` for another account's. A GitHub token that is used directly is never shown: 409.",
    handle: ({ app, request }) => token(app, request) },
  { method: "GET", path: "/", admit: everyone, about: "Name, version and endpoints.",
    handle: ({ app }) => frontPage(app, [...methodsByPath().keys()]) },
  { method: "GET", path: "/health", admit: everyone, about: "Whether requests are taken, and the state of accounts and history.",
    handle: ({ app }) => health(app) },
];

/** A base URL may end in one `/v1` too many: Claude Code would blame the model for the 404. */
const spellings = (path: string) => (path.startsWith("/v1/messages") ? [path, `/v1${path}`] : [path]);

/** @param callerOf The caller of a request, as the gate judged it before routing. */
export function clientRoutes(app: App, callerOf: (request: Request) => Visitor) {
  const wing = new Elysia({ name: "api" });
  for (const { method, path, admit, handle } of routes)
    for (const spelling of spellings(path))
      wing.route(
        method,
        spelling,
        // Elysia reads a handler's source to see which fields it needs: they are named in the parameter.
        ({ request, params }) => {
          const caller = callerOf(request);
          admit(app, request, caller);
          return handle({ app, request, caller, params: decodedParams(params) });
        },
        { parse: "none" },
      );
  for (const [path, methods] of methodsByPath())
    wing.all(path, ({ request }) => {
      throw new ProxyError(
        "method_not_allowed",
        `${request.method} is not served at this path; use ${methods.join(" or ")}.`,
        {
          headers: { allow: methods.join(", ") },
        },
      );
    });
  return wing;
}

/** What each path answers to; HEAD comes with GET. */
export function methodsByPath(): Map<string, string[]> {
  const byPath = new Map<string, string[]>();
  for (const { method, path } of routes)
    byPath.set(path, [...(byPath.get(path) ?? []), ...(method === "GET" ? ["GET", "HEAD"] : [method])]);
  return byPath;
}
