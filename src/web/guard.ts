/** Checks every request before it is routed: who calls, by which host, from which page, and whether the call is our own. */
import { hostname } from "node:os";
import { Elysia } from "elysia";
import type { Config } from "../config/schema";
import type { ConfigStore } from "../config/store";
import { ProxyError } from "../lib/errors";
import { type Caller, foreignPage, type GuardLists, inspect } from "../lib/net/in/caller";
import { pathOfUrl } from "../lib/net/in/params";
import type { Server } from "../parts/app";
import { isAdmin, isAdminApi } from "./admin-path";
import { context, visitOf } from "./context";
import type { Served } from "./served";

/** @param lists Read for each request. @param admin Answers requests for the admin API and the pages. */
export const guard = (
  server: Server,
  served: Served,
  lists: () => GuardLists,
  admin: (request: Request) => Promise<Response>,
) =>
  new Elysia({ name: "guard" }).use(context).onRequest((context) => {
    const { request } = context;
    const visit = visitOf(request)!;
    const { connection, sent } = visit;
    const caller = inspect(request, lists(), connection);
    visit.caller = caller;
    context.dragoman = server;
    context.caller = caller;
    const path = pathOfUrl(request.url);
    if (sent !== request && !served.isForProjects(path)) throw served.refusal(sent.method, pathOfUrl(sent.url));
    // A form or a body is read within the limit; who asks without one may wait for the database.
    if (isAdmin(path) && !bodyMethods.has(request.method)) connection.keepOpen();
    // The admin API authorizes the caller before it refuses a method.
    if (!isAdminApi(path) && !usedMethods.has(request.method)) throw unusedMethod(request.method, path, served);
    if (server.isOurOwn(request.headers)) throw ourselves();
    if (request.method === "OPTIONS") return preflight(request, path, caller, served, lists());
    if (isAdmin(path)) return admin(request);
  });

/** Those of a path that is not served. */
const usualMethods = ["GET", "HEAD", "POST"];
const usedMethods = new Set([...usualMethods, "OPTIONS"]);

/** The error for a method that no route has. Nothing more is read from its connection. */
const unusedMethod = (method: string, path: string, served: Served) =>
  new ProxyError("method_not_allowed", `${method} is not served here.`, {
    headers: { connection: "close", allow: (served.methodsAt(path) ?? usualMethods).join(", ") },
  });

/** Answers OPTIONS, and the preflight of a browser; no handler sees it. */
function preflight({ headers }: Request, path: string, caller: Caller, served: Served, lists: GuardLists): Response {
  const isForPages = served.isForPages(path);
  const allowed = isForPages && mayRead(caller, lists);
  // `allowedOrigins` opens the paths of models only.
  if (caller.foreign && !allowed) throw foreignPage(isForPages ? caller.origin : null);
  const methods = served.methodsAt(path) ?? usualMethods;
  return new Response(null, {
    status: 204,
    headers: allowed
      ? {
          "access-control-allow-methods": methods.join(", "),
          "access-control-allow-headers": headers.get("access-control-request-headers") ?? "",
          "access-control-max-age": "600",
        }
      : { allow: [...methods, "OPTIONS"].join(", ") },
  });
}

/** Lets a page of an allowed origin read the answer: model routes only, the exact origin, no credentials. */
export function allowOrigin(
  { headers }: Response,
  request: Request,
  caller: Caller,
  served: Served,
  lists: GuardLists,
) {
  if (!mayRead(caller, lists) || !served.isForPages(pathOfUrl(request.url))) return;
  headers.set("access-control-allow-origin", caller.origin!);
  headers.append("vary", "Origin");
}

const mayRead = ({ origin }: Caller, { origins }: GuardLists) => origin !== null && origins.has(origin);

const bodyMethods = new Set(["POST", "PUT", "PATCH", "DELETE"]);

const ourselves = () =>
  new ProxyError("loop", "This call was sent by dragoman itself: the address of a provider leads back here.", {
    headers: { "x-should-retry": "false" },
  });

/**
 * The names and origins of the config, read again only when it has changed.
 * @param bound The host that the socket is bound to, as `URL.hostname` writes it. An address that means every interface does not
 * identify this machine: as a Host header it is one allowed name among others.
 */
export function guardLists(config: ConfigStore, bound?: string): () => GuardLists {
  const isEvery = bound === "0.0.0.0" || bound === "::";
  let read: Config | undefined;
  let lists: GuardLists = { hosts: new Set(), origins: new Set() };
  return () => {
    if (read === config.current) return lists;
    read = config.current;
    lists = {
      hosts: new Set([ownName, ...(isEvery ? [bound] : []), ...read.allowedHosts]),
      bound: isEvery ? undefined : bound,
      origins: new Set(read.allowedOrigins),
    };
    return lists;
  };
}

const ownName = hostname().toLowerCase();
