/** The history of requests, and sums of it. */
import { Elysia } from "elysia";
import { z } from "zod";
import { described } from "../../../web/described";
import { dimensionWords, queries } from "../query";
import { answerExport, getRequest, listRequests } from "../requests";
import { roles } from "../roles";
import { entrySchema, pageSchema, requestSchema, statisticsSchema, totalsSchema } from "../schemas";

const filterNames = Object.keys(queries.filters.shape)
  .map((name) => `\`${name}\``)
  .join(", ");

export const requests = new Elysia({ name: "admin-requests" })
  .use(roles)
  .get(
    "/requests",
    ({ app, query: { limit, cursor_id, ...filters } }) => listRequests(app, filters, limit, cursor_id),
    {
      member: true,
      query: queries.requests,
      response: pageSchema,
      detail: described({
        about: `The history, newest first: 50 rows or \`limit\` (at most 200), continued with \`cursor_id\`; filtered by ${filterNames}.`,
      }),
    },
  )
  .get("/requests/:requestId", ({ app, params }) => getRequest(app, params.requestId), {
    member: true,
    response: requestSchema,
    detail: described({
      about: "One request, running or ended.",
      errors: ["not_found"],
    }),
  })
  .get("/totals", ({ app, query }) => app.history.totals(query), {
    member: true,
    query: queries.filters,
    response: totalsSchema,
    detail: described({
      about:
        "The totals of all matching requests: success, tokens, cost, times. Unknown values are counted separately.",
    }),
  })
  .get(
    "/statistics",
    ({ app, request, query: { by, ...filters } }) => app.history.statistics(filters, by, request.signal),
    {
      member: true,
      query: queries.statistics,
      response: statisticsSchema,
      detail: described({
        about: `The same totals in groups: \`by\` takes one or two of ${dimensionWords}.`,
      }),
    },
  )
  .get("/export", ({ app, query }) => answerExport(app, query), {
    member: true,
    query: queries.export,
    detail: described({
      about: "All matching requests as a file: `format=csv` or `json`.",
      answers: { "text/csv": z.string(), "application/json": z.array(entrySchema) },
    }),
  });
