/** Probes and metrics for machines. */
import { Elysia } from "elysia";
import { z } from "zod";
import { readMetrics } from "../books/observe/metrics";
import { prometheusText, prometheusType } from "../books/observe/prometheus";
import { metricsPath, probePaths } from "../lib/api-paths";
import type { Server } from "../parts/app";
import { countStates } from "../people/accounts/account-state";
import { access } from "../web/access";
import { described } from "../web/described";
import { healthSchema, readySchema } from "./schemas";

export const probes = new Elysia({ name: "probes" })
  .use(access)
  .get("/health", ({ dragoman }) => health(dragoman), {
    access: "probes",
    detail: described({
      about: "Whether requests are accepted, and the state of the accounts and the history.",
      answers: healthSchema,
    }),
  })
  .get(probePaths.live, ({ dragoman }) => ({ status: "ok", version: dragoman.version }), {
    access: "probes",
    detail: described({
      about: "Whether the process answers.",
      answers: () => z.object({ status: z.literal("ok"), version: z.string() }),
    }),
  })
  .get(probePaths.ready, ({ dragoman }) => ready(dragoman), {
    access: "probes",
    detail: described({
      about: "Whether new requests should come here; `degraded` names what does not work all the same.",
      answers: readySchema,
      otherAnswers: () => ({
        503: {
          about: "Running requests end, the database has been away for too long, or the config has an error.",
          response: readySchema(),
        },
      }),
    }),
  })
  .get(metricsPath, ({ dragoman }) => metricsResponse(dragoman), {
    access: "metrics",
    detail: described({
      about:
        "Metrics for Prometheus. From another machine with `DRAGOMAN_METRICS_TOKEN` or `ADMIN_TOKEN`, as `Authorization: Bearer <token>`.",
      answers: () => ({ "text/plain": z.string() }),
      errors: ["rate_limit"],
    }),
  });

/** 200 as long as requests are accepted; the body says whether an account can serve them. */
const health = (app: Server): z.infer<ReturnType<typeof healthSchema>> => ({
  status: "ok",
  version: app.version,
  demo: app.demo,
  accounts: app.owner.accounts.map(({ state }) => state.name),
  ...(app.members?.needKeys ? { team_accounts: countStates(app.allAccounts) } : {}),
  history: app.history.degraded ? "degraded" : "ok",
});

/**
 * 200 if new requests should come here, else 503: while running requests end, while the database has been away for too long, and
 * while the config has an error, because what it should change, for example a removed key, is not in effect. An account that
 * cannot serve does not count: another server would have the same accounts.
 */
function ready(app: Server): Response {
  const status = app.draining ? "draining" : app.isolation ? "database" : app.config.fault ? "config" : "ready";
  const body: z.infer<ReturnType<typeof readySchema>> = { status, version: app.version, degraded: degradedParts(app) };
  return Response.json(body, { status: status === "ready" ? 200 : 503, headers: { "cache-control": "no-store" } });
}

const degradedParts = ({ allAccounts, history, team }: Server): z.infer<ReturnType<typeof readySchema>>["degraded"] => [
  ...(allAccounts.some(({ state }) => state.name === "ready") ? [] : (["accounts"] as const)),
  ...(history.degraded ? (["history"] as const) : []),
  ...(team?.isDatabaseAway ? (["database"] as const) : []),
];

async function metricsResponse(app: Server): Promise<Response> {
  await app.members?.hearAll();
  return new Response(prometheusText(await readMetrics(app)), {
    headers: { "content-type": prometheusType, "cache-control": "no-store" },
  });
}
