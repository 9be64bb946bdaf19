/** The bill. */
import { Elysia } from "elysia";
import { z } from "zod";
import { described } from "../../../web/described";
import { billOf } from "../bill";
import { queries } from "../query";
import { roles } from "../roles";

export const bill = new Elysia({ name: "admin-bill" }).use(roles).get(
  "/bill",
  async ({ app, query, request }) =>
    new Response(await billOf(app, query, request.signal), {
      headers: {
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
);
