/** The owner's wing: every path under /api/admin on one page, all of them behind one door. */
import { Elysia } from "elysia";
import type { App } from "../../app";
import { type ErrorKind, ProxyError } from "../../errors";
import type { Visitor } from "../../net/guard";
import { decodedParams } from "../../net/params";
import { adminGuard } from "../access/authorize";
import { lazyPages } from "../pages/lazy-pages";
import { changeConfig, showConfig } from "./config";
import {
  answerAccounts,
  answerExport,
  answerLive,
  answerMeta,
  answerModels,
  answerRequest,
  answerRequests,
  answerStatistics,
  answerTotals,
  cancelRequest,
  forgetRefusedField,
} from "./handlers";

interface Visit {
  app: App;
  request: Request;
  caller: Visitor;
  params: Record<string, string>;
  /** Others than this machine can reach us. */
  exposed: boolean;
}

interface Route {
  method: "GET" | "POST";
  path: string;
  handle: (visit: Visit) => Response | Promise<Response>;
  /** For the README. */
  about: string;
}

// biome-ignore format: a table
export const adminRoutes: Route[] = [
  { method: "GET", path: "/api/admin/meta", about: "The program and its history: file, limits, rows, since when, and whether it can be written.",
    handle: ({ app }) => answerMeta(app) },
  { method: "GET", path: "/api/admin/accounts", about: "The accounts: state, plan, what is left and until when; with `include_stats=1` what each was used for since `since_ms` (a day ago).",
    handle: ({ app, request }) => answerAccounts(app, request) },
  { method: "GET", path: "/api/admin/requests", about: "The history, newest first, 50 rows or `limit` (200 at most), then by `cursor_id`; narrowed by `account_id`, `account_key`, `client_model`, `upstream_model`, `client_name`, `path`, `upstream_endpoint`, `initiator`, `stream`, `status`, `status_class`, `has_error`, `from_ms`, `to_ms`.",
    handle: ({ app, request }) => answerRequests(app, request) },
  { method: "GET", path: "/api/admin/requests/:requestId", about: "One request, running or ended.",
    handle: ({ app, params }) => answerRequest(app, params.requestId ?? "") },
  { method: "GET", path: "/api/admin/totals", about: "What all requests of the same filters come to: success, tokens, cost, times; unknown counted apart.",
    handle: ({ app, request }) => answerTotals(app, request) },
  { method: "GET", path: "/api/admin/statistics", about: "The same in groups: `by` one or two of hour, day, model, client_model, account, account_key, client, endpoint, path, initiator, status.",
    handle: ({ app, request }) => answerStatistics(app, request) },
  { method: "GET", path: "/api/admin/export", about: "All requests of the same filters as a file: `format=csv` or `json`.",
    handle: ({ app, request }) => answerExport(app, request) },
  { method: "GET", path: "/api/admin/models", about: "The live catalogue: limits, endpoints, price, policy, accounts, refused fields.",
    handle: ({ app }) => answerModels(app) },
  { method: "POST", path: "/api/admin/models/forget", about: "Sends a refused field to its model again: `{\"model\", \"field\"}`, all of the model's without `field`.",
    handle: ({ app, request }) => forgetRefusedField(app, request) },
  { method: "GET", path: "/api/admin/live", about: "What runs and what ends, as server-sent events: snapshot, running, finished.",
    handle: ({ app, request, caller }) => answerLive(app, request, caller) },
  { method: "POST", path: "/api/admin/live/:requestId/cancel", about: "Ends a running request; its client is told.",
    handle: ({ app, request, params }) => cancelRequest(app, request, params.requestId ?? "") },
  { method: "GET", path: "/api/admin/config", about: "The config: every key, secrets masked, and whether it is stored or the default.",
    handle: ({ app }) => showConfig(app) },
  { method: "POST", path: "/api/admin/config", about: "Changes the config, at once and for good: a JSON object of the keys to change.",
    handle: ({ app, request, exposed }) => changeConfig(app, request, exposed) },
];

/** @param callerOf The caller of a request, as the gate judged it before routing. */
export function adminPlugin(app: App, callerOf: (request: Request) => Visitor, exposed: boolean) {
  const admit = adminGuard(app);
  const wing = new Elysia({ name: "admin" });
  for (const { method, path, handle } of adminRoutes)
    wing.route(
      method,
      path,
      // Elysia reads a handler's source to see which fields it needs: they are named in the parameter.
      ({ request, params }) => {
        const caller = callerOf(request);
        admit(request, caller);
        return handle({ app, request, caller, params: decodedParams(params), exposed });
      },
      { parse: "none" },
    );
  // Whoever may not come in does not learn what there is.
  for (const [path, methods] of methodsByPath())
    wing.all(path, ({ request }) => {
      admit(request, callerOf(request));
      throw new ProxyError("method_not_allowed", `${request.method} is not served here; use ${methods.join(" or ")}.`, {
        headers: { allow: methods.join(", ") },
      });
    });
  for (const path of ["/api/admin", "/api/admin/*"])
    wing.all(path, ({ request }) => {
      admit(request, callerOf(request));
      throw new ProxyError("not_found", "There is nothing here in the admin API.");
    });
  return wing.use(lazyPages(app, admit, callerOf, exposed));
}

/** Whether a path is the admin API's, so that its errors and refusals are. */
export const isAdminPath = (path: string) => /^\/api\/admin(?:\/|$)/.test(path);

/** An error in the admin API's shape. */
export function encodeAdminError({ kind, message, details }: ProxyError) {
  return { error: { type: details.code ?? types[kind] ?? kind, message, param: details.param } };
}

const types: Partial<Record<ErrorKind, string>> = { authentication: "unauthorized", permission: "forbidden" };

function methodsByPath(): Map<string, string[]> {
  const byPath = new Map<string, string[]>();
  for (const { method, path } of adminRoutes)
    byPath.set(path, [...(byPath.get(path) ?? []), ...(method === "GET" ? ["GET", "HEAD"] : [method])]);
  return byPath;
}
