/** The macro by which a route says who may use it. Its handler then finds in `scope` the part of the server that is the caller's. */
import { Elysia } from "elysia";
import type { Awaitable } from "../lib/awaitable";
import { ProxyError } from "../lib/errors";
import { decodedParams } from "../lib/net/in/params";
import type { Server } from "../parts/app";
import { scopeOf } from "../parts/bound-scopes";
import type { KeyedCaller } from "../people/keys/client-keys";
import {
  requireClientKey,
  requireGoogleKey,
  requireMetricsAccess,
  requireSignIn,
  requireTokenAccess,
} from "./client-access";
import { context, unread } from "./context";
import { accessDetail } from "./described";
import { clientQuery } from "./query";

export interface Access {
  /** Missing where everybody may use the route. @throws ProxyError when the caller may not. */
  authorize?(server: Server, request: Request, caller: KeyedCaller): Awaitable<void>;
  /** Pages of the config's `allowedOrigins` may use it. */
  forPages?: boolean;
  /** Tools ask it at the address that they have, which may be a project's. */
  forProjects?: boolean;
  /** Answered while running requests end, too. */
  whileStopping?: boolean;
}

export const accessRules = {
  models: { authorize: requireClientKey, forPages: true, forProjects: true },
  google: { authorize: requireGoogleKey, forPages: true, forProjects: true },
  usage: { authorize: requireClientKey },
  tools: { authorize: requireClientKey, forProjects: true },
  token: { authorize: requireTokenAccess },
  signIn: { authorize: requireSignIn },
  metrics: { authorize: requireMetricsAccess, whileStopping: true },
  probes: { whileStopping: true },
  everybody: {},
} satisfies Record<string, Access>;

export type AccessName = keyof typeof accessRules;

export const access = new Elysia({ name: "access" }).use(context).macro({
  access: (name: AccessName) => {
    const { authorize, whileStopping = false }: Access = accessRules[name];
    return {
      ...unread,
      detail: accessDetail(name),
      // Before the input is validated: nobody else learns what is wrong with theirs. Elysia reads in a function's text whether it
      // is to be waited for, and lets everybody in where it does not see that: this must stay an `async` function. Minified, it
      // understands an arrow, and no method.
      transform: async (context) => {
        const { dragoman, request, caller } = context;
        if (dragoman.refusing && !whileStopping) throw shuttingDown();
        const asked = authorize?.(dragoman, request, caller);
        if (asked) await asked;
        context.scope = scopeOf(dragoman, caller.key, request.headers);
        // The name that a wildcard stands for is decoded by its handler.
        if (context.params && !("*" in context.params)) context.params = decodedParams(context.params);
        if (request.url.includes("?")) context.query = clientQuery(request.url);
      },
    };
  },
});

/** For a request that came after the signal to stop; the client's next try reaches the server that runs then. */
export const shuttingDown = () =>
  new ProxyError("no_account", "dragoman is shutting down; send the request again in a moment.", {
    code: "shutting_down",
    headers: { connection: "close", "retry-after": "1" },
  });
