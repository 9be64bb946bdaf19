/** Budgets. */
import { Elysia } from "elysia";
import { z } from "zod";
import { budgetListSchema } from "../../../people/budgets/budget-list";
import { described } from "../../../web/described";
import { addBudget, listBudgets, newBudgetSchema, removeBudget } from "../budgets";
import { queries } from "../query";
import { roles, takes } from "../roles";

export const budgets = new Elysia({ name: "admin-budgets" })
  .use(roles)
  .get("/budgets", async ({ app, query }) => ({ items: await listBudgets(app, query) }), {
    member: true,
    query: queries.budgets,
    response: budgetListSchema(),
    detail: described({
      about:
        "The budgets: limits, what is used and reserved in this period, and when it ends. `holders` are the members, keys, accounts or projects that have an amount of their own, highest first; `budget`, `limit` and `offset` page through those of one.",
    }),
  })
  .post("/budgets", ({ app, body }) => addBudget(app, body), {
    owner: true,
    ...takes(newBudgetSchema),
    response: z.object({ added: z.literal(true) }),
    detail: described({
      about: "Adds a budget to the config.",
      errors: ["conflict"],
    }),
  })
  .post("/budgets/remove", ({ app, body: { name } }) => removeBudget(app, name), {
    owner: true,
    ...takes(z.strictObject({ name: z.string() })),
    response: z.object({ removed: z.literal(true) }),
    detail: described({
      about: 'Removes a budget from the config: `{"name"}`.',
      errors: ["not_found", "conflict"],
    }),
  });
