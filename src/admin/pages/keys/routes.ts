import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { createFromPage, keysPage, revokeFromPage } from "./page";

export const keys = new Elysia({ name: "keys" })
  .use(access)
  .get("/keys", ({ page }) => keysPage(page), { page: "member", detail: inMenu("Keys", "setup") })
  .post("/keys", ({ page }) => createFromPage(page), { page: "member" })
  .post("/keys/revoke", ({ page }) => revokeFromPage(page), { page: "member" });
