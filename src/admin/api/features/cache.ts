/** What the upstream's prompt cache saved. */
import { Elysia } from "elysia";
import { dayMs } from "../../../lib/format";
import { described } from "../../../web/described";
import { cacheReport, cacheReportSchema } from "../cache";
import { queries } from "../query";
import { roles } from "../roles";

export const cache = new Elysia({ name: "admin-cache" })
  .use(roles)
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
