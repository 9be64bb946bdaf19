import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { overviewPage } from "./page";

export const overview = new Elysia({ name: "overview" })
  .use(access)
  .get("", ({ page }) => overviewPage(page), { page: "member", detail: inMenu("Overview", "daily") });
