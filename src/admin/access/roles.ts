/** Who may use an endpoint of the admin API. */

/** `member`: members too, who see only what is their own. `owner`: nobody else. */
export type Role = "member" | "owner";

/** Every endpoint by method and path. One that is missing here is the owner's. */
// biome-ignore format: a table
export const endpointRoles: Readonly<Record<string, Role>> = {
  "GET /api/admin/meta": "owner",
  "GET /api/admin/accounts": "member",
  "POST /api/admin/accounts/sign-ins": "member",
  "GET /api/admin/accounts/sign-ins/:id": "member",
  "POST /api/admin/accounts/sign-ins/:id/cancel": "member",
  // Both are kept in the config.
  "POST /api/admin/accounts/pause": "owner",
  "POST /api/admin/accounts/order": "owner",
  "POST /api/admin/accounts/remove": "member",
  "GET /api/admin/requests": "member",
  "GET /api/admin/requests/:requestId": "member",
  "GET /api/admin/totals": "member",
  "GET /api/admin/statistics": "member",
  "GET /api/admin/export": "member",
  "GET /api/admin/models": "member",
  "POST /api/admin/models/forget": "owner",
  "GET /api/admin/cache": "member",
  // A stream would go on after its key was revoked.
  "GET /api/admin/live": "owner",
  "POST /api/admin/live/:requestId/cancel": "member",
  "GET /api/admin/config": "owner",
  "POST /api/admin/config": "owner",
  "GET /api/admin/keys": "member",
  "POST /api/admin/keys": "owner",
  "POST /api/admin/keys/:name/revoke": "member",
  "GET /api/admin/drift": "owner",
  "GET /api/admin/budgets": "member",
  "POST /api/admin/budgets": "owner",
  "POST /api/admin/budgets/remove": "owner",
  "POST /api/admin/notices/test": "owner",
  "GET /api/admin/openapi.json": "member",
};

export const roleOf = (method: string, path: string): Role => endpointRoles[`${method} ${path}`] ?? "owner";
