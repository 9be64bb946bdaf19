import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { promptsPage } from "./page";
import { promptPage } from "./prompt";

export const prompts = new Elysia({ name: "prompts" })
  .use(access)
  .get("/prompts", ({ page }) => promptsPage(page), { page: "member", detail: inMenu("Prompts", "daily") })
  .get("/prompts/:id", ({ page }) => promptPage(page), { page: "member" });
