/** The front page for people, and the probes and metrics for machines. */
import type { z } from "zod";
import { readMetrics } from "../books/observe/metrics";
import { prometheusText, prometheusType } from "../books/observe/prometheus";
import type { Server } from "../parts/app";
import { countStates } from "../people/accounts/account-state";
import type { frontSchema, healthSchema, liveSchema, readySchema } from "./schemas";

/** Whether a browser asks for a page to show. */
export const wantsPage = ({ headers }: Request): boolean => headers.get("accept")?.includes("text/html") === true;

export const toPages = (): Response =>
  new Response(null, { status: 303, headers: { location: "/admin", vary: "accept" } });

export const frontPage = (app: Server, endpoints: string[]): z.infer<ReturnType<typeof frontSchema>> => ({
  name: "dragoman",
  version: app.version,
  ...(app.demo ? { demo: "DEMO: the upstream is scripted; no account is used and nothing leaves this machine." } : {}),
  endpoints,
});

/** 200 as long as requests are accepted; the body says whether an account can serve them. */
export const health = (app: Server): z.infer<ReturnType<typeof healthSchema>> => ({
  status: "ok",
  version: app.version,
  demo: app.demo,
  accounts: app.owner.accounts.map(({ state }) => state.name),
  ...(app.members?.needKeys ? { team_accounts: countStates(app.allAccounts) } : {}),
  history: app.history.degraded ? "degraded" : "ok",
});

/** 200 as long as the process answers at all. */
export const live = (app: Server): z.infer<ReturnType<typeof liveSchema>> => ({ status: "ok", version: app.version });

/**
 * 200 if new requests should come here, else 503: while running requests end, while the database has been away for too long, and
 * while the config has an error, because what it should change, for example a removed key, is not in effect. An account that cannot serve does not count: another
 * server would have the same accounts.
 */
export function ready(app: Server): Response {
  const status = app.draining ? "draining" : app.isolation ? "database" : app.config.fault ? "config" : "ready";
  const body: z.infer<ReturnType<typeof readySchema>> = { status, version: app.version, degraded: degradedParts(app) };
  return Response.json(body, { status: status === "ready" ? 200 : 503, headers: { "cache-control": "no-store" } });
}

const degradedParts = ({ allAccounts, history, team }: Server): z.infer<ReturnType<typeof readySchema>>["degraded"] => [
  ...(allAccounts.some(({ state }) => state.name === "ready") ? [] : (["accounts"] as const)),
  ...(history.degraded ? (["history"] as const) : []),
  ...(team?.isDatabaseAway ? (["database"] as const) : []),
];

export async function metricsResponse(app: Server): Promise<Response> {
  await app.members?.hearAll();
  return new Response(prometheusText(await readMetrics(app)), {
    headers: { "content-type": prometheusType, "cache-control": "no-store" },
  });
}
