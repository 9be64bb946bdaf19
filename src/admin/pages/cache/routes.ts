import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { cachePage } from "./page";

export const cache = new Elysia({ name: "cache" })
  .use(access)
  .get("/cache", ({ page }) => cachePage(page), { page: "member", detail: inMenu("Cache", "rare") });
