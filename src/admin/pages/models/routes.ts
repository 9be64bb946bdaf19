import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { modelsPage } from "./page";

export const models = new Elysia({ name: "models" })
  .use(access)
  .get("/models", ({ page }) => modelsPage(page), { page: "member", detail: inMenu("Models", "setup") });
