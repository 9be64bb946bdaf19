/** The admin API: an app of its own, loaded with the first request for it. */
import { Elysia } from "elysia";
import { ProxyError } from "../../lib/errors";
import type { Server } from "../../parts/app";
import { keyGone } from "../../people/keys/client-keys";
import { appOptions, visitOf } from "../../web/context";
import { type Described, endpointsOf } from "../../web/described";
import { errors } from "../../web/errors";
import type { EndpointGroup } from "../../web/openapi";
import { Paths } from "../../web/paths";
import { authorizerOf, type Role } from "../access/authorize";
import { accounts } from "./features/accounts";
import { advice } from "./features/advice";
import { bill } from "./features/bill";
import { budgets } from "./features/budgets";
import { cache } from "./features/cache";
import { config } from "./features/config";
import { documents } from "./features/documents";
import { keys } from "./features/keys";
import { live } from "./features/live";
import { members } from "./features/members";
import { prompts } from "./features/prompts";
import { reconciliation } from "./features/reconcile";
import { requests } from "./features/requests";
import { upstream } from "./features/upstream";
import { type Admitted, roles } from "./roles";
import { adminErrorSchema } from "./schemas";

/** A feature is a plugin: without its line here it is gone. */
export const features = new Elysia({ name: "admin-features", prefix: "/api/admin" })
  .use(accounts)
  .use(requests)
  .use(prompts)
  .use(bill)
  .use(reconciliation)
  .use(cache)
  .use(advice)
  .use(live)
  .use(upstream)
  .use(config)
  .use(keys)
  .use(members)
  .use(budgets)
  .use(documents);

/** For callers that know the paths and types of the API. */
export type AdminApi = typeof features;

/**
 * Answers requests for the admin API.
 * @param describeApi Makes the OpenAPI document of the whole server.
 */
export function adminApi(server: Server, describeApi: () => Promise<object>): (request: Request) => Promise<Response> {
  const admit = authorizerOf(server);
  const app = new Elysia({ name: "admin-api", ...appOptions })
    .use(errors(server, { refusal }))
    .use(roles)
    // Whoever asks is admitted before routing: a 404 or 405 would tell a stranger what exists.
    .onRequest(async (context) => {
      const { request } = context;
      const caller = visitOf(request)!.caller!;
      const member = await admit(request, caller);
      const admitted: Admitted = {
        dragoman: server,
        caller,
        member,
        scope: server.forMember(member),
        async requireStillAllowed() {
          if ((await admit(request, caller)) !== member) throw keyGone();
        },
        describeApi,
      };
      Object.assign(context, admitted);
      caller.connection.keepOpen();
    })
    .use(features);
  return async (request) => {
    const response = await app.fetch(request);
    response.headers.set("cache-control", "no-store");
    return response;
  };
}

const paths = new Paths(() => adminEndpoints());

const refusal = (method: string, path: string): ProxyError =>
  paths.wrongMethod(method, path) ?? new ProxyError("not_found", "There is nothing here in the admin API.");

interface AdminEndpoint extends Described<"member" | "lasting" | "owner"> {
  role: Role;
}

/** The endpoints of the admin API. */
export const adminEndpoints = (): AdminEndpoint[] =>
  endpointsOf<AdminEndpoint["access"]>(features).map((endpoint) => ({
    ...endpoint,
    role: endpoint.access === "owner" ? "owner" : "member",
  }));

export const adminGroup = (): EndpointGroup => ({
  endpoints: adminEndpoints(),
  security: ["adminToken", "bearer"],
  errors: ["authentication", "permission", "rate_limit"],
  errorAt: () => adminErrorSchema,
});
