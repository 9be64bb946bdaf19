/** GitHub's own report of credits, beside the history. */
import { Elysia } from "elysia";
import { described } from "../../../web/described";
import { reconcile, reconcileSchema, reconciliationSchema } from "../reconcile";
import { roles, takes } from "../roles";

export const reconciliation = new Elysia({ name: "admin-reconcile" })
  .use(roles)
  .post("/reconcile", ({ app, body }) => reconcile(app, body), {
    owner: true,
    ...takes(reconcileSchema),
    response: reconciliationSchema,
    detail: described({
      about:
        "GitHub's own report of an account's AI credits in a month beside the sums of the history, by day and model, with likely causes of the differences. It needs a token that may read the plan; 502 says what GitHub refuses.",
      errors: ["not_found", "upstream", "timeout"],
    }),
  });
