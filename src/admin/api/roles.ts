/** Who may use what of the admin API, and how it reads a request. */
import { Elysia } from "elysia";
import type { z } from "zod";
import { ProxyError } from "../../lib/errors";
import { parseInput } from "../../lib/input";
import type { Visitor } from "../../lib/net/in/caller";
import { decodedParams } from "../../lib/net/in/params";
import { readJson } from "../../lib/net/in/request-body";
import type { App, Scope, Server } from "../../parts/app";
import { requireLasting } from "../../people/keys/client-keys";
import { unread } from "../../web/context";
import { accessDetail } from "../../web/described";
import { formQuery } from "../../web/query";
import { keySentTo } from "../access/authorize";

/** The members that every handler of the admin API finds in its context. Set by `plugin.ts` before routing. */
// Elysia wants an index signature, which an interface lacks.
export type Admitted = {
  dragoman: Server;
  caller: Visitor;
  /** The caller's id as a member; null for the owner. */
  member: string | null;
  /** The part of the server that the caller may use: a member has their own accounts and requests only. */
  scope: Scope;
  /** @throws ProxyError `authentication` if the member's key was revoked since the request began. */
  requireStillAllowed(): Promise<void>;
  /** Makes the OpenAPI document of the whole server. */
  describeApi(): Promise<object>;
};

/** Bytes of a body. */
const maxBody = 64 * 1024;

/** Refuses who may not, and then reads the address. */
const forRole = (rule: string, refuse?: (caller: Admitted & Addressed) => void) => ({
  ...unread,
  detail: accessDetail(rule),
  // Elysia reads in a hook's text whether it is to be waited for: what refuses must stay an `async` function, and an arrow, since it
  // does not understand a minified method. It validates what was sent after `transform`, so that nobody else learns what is wrong
  // with theirs.
  transform: async (context: Admitted & Addressed) => {
    refuse?.(context);
    requireJson(context.request);
    context.params = decodedParams(context.params as Record<string, string | null>);
    context.query = formQuery(context.request.url);
  },
});

export const roles = new Elysia({ name: "roles" }).decorate({} as Admitted).macro({
  /** Members too, who see only what is their own. */
  member: {
    ...forRole("member"),
    resolve: ({ scope }: Admitted) => ({ app: scope }),
  },
  /** The same, for what is good for longer than a tool's token, which may not ask for it. */
  lasting: {
    ...forRole("lasting", ({ scope, request }) => requireLasting(keySentTo(scope, request))),
    resolve: ({ scope }: Admitted) => ({ app: scope }),
  },
  /** Nobody else. */
  owner: {
    ...forRole("owner", ({ member }) => {
      if (member !== null) throw ownersAlone();
    }),
    resolve: ({ scope }: Admitted) => ({ app: scope.owner as App }),
  },
});

interface Addressed {
  request: Request;
  params: unknown;
  query: unknown;
}

/** A page of another origin can send a form, but not this content type without a preflight. @throws ProxyError 415. */
function requireJson({ method, headers }: Request): void {
  if (method === "POST" && !/^application\/json\s*(?:;|$)/i.test(headers.get("content-type") ?? ""))
    throw new ProxyError("unsupported_media", "This must be sent as `Content-Type: application/json`.");
}

/**
 * The options of a route that takes a body of this shape. Elysia's parsers, and a route's own `transform`, run before the macro has
 * checked the role, and without a parser Elysia validates no body: it is read and validated here. It may be sent so slowly that its
 * sender's key is revoked before its end.
 * @throws ProxyError as `readJson` does, `invalid_request`, and `authentication`.
 */
export const takes = <Body extends z.ZodObject>(body: Body) => ({
  body,
  beforeHandle: async (context: { request: Request; body: unknown; requireStillAllowed(): Promise<void> }) => {
    context.body = parseInput((await readJson(context.request, maxBody)).body, body);
    await context.requireStillAllowed();
  },
});

const ownersAlone = () =>
  new ProxyError("permission", "Only the owner of this dragoman may do this.", { code: "owner_only" });
