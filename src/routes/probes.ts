/** Probes and metrics for machines. */
import { Elysia } from "elysia";
import { z } from "zod";
import { metricsPath, probePaths } from "../lib/api-paths";
import { access } from "../web/access";
import { described } from "../web/described";
import { healthSchema, liveSchema, readySchema } from "./schemas";
import { health, live, metricsResponse, ready } from "./status";

export const probes = new Elysia({ name: "probes" })
  .use(access)
  .get("/health", ({ dragoman }) => health(dragoman), {
    access: "probes",
    detail: described({
      about: "Whether requests are accepted, and the state of the accounts and the history.",
      answers: healthSchema,
    }),
  })
  .get(probePaths.live, ({ dragoman }) => live(dragoman), {
    access: "probes",
    detail: described({
      about: "Whether the process answers.",
      answers: liveSchema,
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
