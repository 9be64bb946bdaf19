import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { addAppFromPage, moveFromPage, pauseFromPage, removeFromPage } from "./forms";
import { accountsPage } from "./page";
import { beginFromPage, cancelSignInFromPage, signInPage } from "./sign-in";

export const accounts = new Elysia({ name: "accounts" })
  .use(access)
  .get("/accounts", ({ page }) => accountsPage(page), { page: "member", detail: inMenu("Accounts", "setup") })
  .post("/accounts/sign-in", ({ page }) => beginFromPage(page), { page: "member" })
  .get("/accounts/sign-in/:id", ({ page }) => signInPage(page), { page: "member" })
  .post("/accounts/sign-in/:id/cancel", ({ page }) => cancelSignInFromPage(page), { page: "member" })
  .post("/accounts/app", ({ ownersPage }) => addAppFromPage(ownersPage), { page: "owner" })
  .post("/accounts/pause", ({ page }) => pauseFromPage(page), { page: "member" })
  .post("/accounts/move", ({ page }) => moveFromPage(page), { page: "member" })
  .post("/accounts/remove", ({ page }) => removeFromPage(page), { page: "member" });
