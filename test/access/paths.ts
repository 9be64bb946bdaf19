/** Every path of the server, from the product's own tables, by what decides who may ask. */
import { adminEndpoints } from "../../src/admin/api/plugin";
import { pageEndpoints } from "../../src/admin/pages/plugin";
import { gatewayPaths } from "../../src/lib/api-paths";
import { clientEndpoints } from "../../src/routes/clients";

/**
 * `model`: for client keys · `token`: hands out the upstream's token · `open`: for everybody · `metrics` · `admin`: the admin API ·
 * `page`: the pages of the owner and the members.
 */
export const kinds = ["model", "token", "open", "metrics", "admin", "page"] as const;
export type Kind = (typeof kinds)[number];

/** By them somebody without a key gets one, if a member confirms it: test/access/guide.test.ts and test/attacks/device-flow.test.ts ask them. */
const signIn = "sign-in";

export interface Ask {
  method: string;
  path: string;
}

/** What stands for each parameter. A new one is added here. */
const values: Record<string, string> = {
  provider: "prov",
  model: "gemini-3.1-pro-preview",
  accountIndex: "0",
  id: "gpt-5-mini",
  requestId: "x",
  name: "x",
};

const filled = (path: string): string =>
  path.replace(/(?<=\/):(\w+)/g, (_, name: string) => {
    if (values[name] === undefined) throw new Error(`What stands for :${name} in ${path}? Add it here.`);
    return values[name];
  });

/** The only client paths that need no client key. A new path needs one, unless it is added here. */
const exceptions: Record<string, Kind | typeof signIn> = {
  "/": "open",
  "/health": "open",
  "/health/live": "open",
  "/health/ready": "open",
  "/metrics": "metrics",
  "/token": "token",
  ...Object.fromEntries(
    [gatewayPaths.discovery, gatewayPaths.device, gatewayPaths.token, gatewayPaths.revoke].map((path) => [
      path,
      signIn,
    ]),
  ),
};

const asks = (rows: readonly Ask[]): Ask[] => rows.map(({ method, path }) => ({ method, path: filled(path) }));
const clients = (kind: Kind | typeof signIn) =>
  asks(clientEndpoints().filter(({ path }) => (exceptions[path] ?? "model") === kind));

export const paths: Readonly<Record<Kind | typeof signIn, readonly Ask[]>> = {
  [signIn]: clients(signIn),
  model: clients("model"),
  token: clients("token"),
  open: clients("open"),
  metrics: clients("metrics"),
  admin: asks(adminEndpoints()),
  page: asks(pageEndpoints()),
};

/** A page that is not there. */
export const noPage: Ask = { method: "GET", path: "/admin/nope" };

/** Below the admin API, and not served: refused before anybody learns that. */
export const nothingInAdmin: readonly Ask[] = [
  { method: "GET", path: "/api/admin" },
  { method: "GET", path: "/api/admin/" },
  { method: "GET", path: "/api/admin/nope" },
  { method: "GET", path: "/api/admin/requests/" },
  { method: "GET", path: "/api/admin/requests/%E0%A4%A" },
  { method: "POST", path: "/api/admin/config/nope" },
  { method: "DELETE", path: "/api/admin/config" },
  { method: "PATCH", path: "/api/admin/config" },
  { method: "PUT", path: "/api/admin/nope" },
];
