import { Elysia } from "elysia";
import { access } from "../access";
import { cancelFromPage, requestPage } from "./page";

export const request = new Elysia({ name: "request" })
  .use(access)
  .get("/requests/:id", ({ page }) => requestPage(page), { page: "member" })
  .post("/requests/:id/cancel", ({ page }) => cancelFromPage(page), { page: "member" });
