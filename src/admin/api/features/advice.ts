/** What would have cost less. */
import { Elysia } from "elysia";
import { described } from "../../../web/described";
import { adviceFor, adviceReportSchema } from "../advice";
import { roles } from "../roles";

export const advice = new Elysia({ name: "admin-advice" }).use(roles).get("/advice", ({ app }) => adviceFor(app), {
  member: true,
  response: adviceReportSchema,
  detail: described({
    about:
      "What changing one thing would have saved in the last 14 days, at list prices, with the setting or command: only what is worth 5 % of all and a dollar.",
  }),
});
