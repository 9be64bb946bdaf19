import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { addBudgetFromPage, budgetsPage, removeBudgetFromPage, testNoticeFromPage } from "./page";

export const budgets = new Elysia({ name: "budgets" })
  .use(access)
  .get("/budgets", ({ page }) => budgetsPage(page), { page: "member", detail: inMenu("Budgets", "setup") })
  .post("/budgets", ({ ownersPage }) => addBudgetFromPage(ownersPage), { page: "owner" })
  .post("/budgets/remove", ({ ownersPage }) => removeBudgetFromPage(ownersPage), { page: "owner" })
  .post("/notices/test", ({ ownersPage }) => testNoticeFromPage(ownersPage), { page: "owner" });
