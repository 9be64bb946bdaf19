/** Reports: the bill, the upstream's cache, and GitHub's own report of credits. */
import { Elysia } from "elysia";
import { z } from "zod";
import { dayMs } from "../../../lib/format";
import { described } from "../../../web/described";
import { billOf } from "../bill";
import { cacheReport, cacheReportSchema } from "../cache";
import { queries } from "../query";
import { reconcile, reconcileSchema, reconciliationSchema } from "../reconcile";
import { roles, takes } from "../roles";

export const reports = new Elysia({ name: "admin-reports" })
  .use(roles)
  .get(
    "/bill",
    async ({ app, query, request }) =>
      new Response(await billOf(app, query, request.signal), {
        headers: {
          "cache-control": "no-store",
          "content-type": "text/csv; charset=utf-8",
          "content-disposition": 'attachment; filename="dragoman-bill.csv"',
        },
      }),
    {
      member: true,
      query: queries.filters,
      detail: described({
        about:
          "What matching requests cost by day, as CSV: prompts, requests, unit, amount, US dollars; a line for each day and unit. With `project`, the bill of a client's work.",
        answers: () => ({ "text/csv": z.string() }),
      }),
    },
  )
  .post("/reconcile", ({ app, body }) => reconcile(app, body), {
    owner: true,
    ...takes(reconcileSchema),
    response: reconciliationSchema,
    detail: described({
      about:
        "GitHub's own report of an account's AI credits in a month beside the sums of the history, by day and model, with likely causes of the differences. It needs a token that may read the plan; 502 says what GitHub refuses.",
      errors: ["not_found", "upstream", "timeout"],
    }),
  })
  .get(
    "/cache",
    ({ app, query: { from_ms = app.now() - 7 * dayMs, to_ms } }) =>
      cacheReport(app, { from_ms, ...(to_ms === undefined ? {} : { to_ms }) }),
    {
      member: true,
      query: queries.cache,
      response: cacheReportSchema,
      detail: described({
        about:
          "The upstream's prompt cache between `from_ms` (a week ago) and `to_ms`: share and savings by model, client and session, and turns that did not find their prompt.",
      }),
    },
  );
