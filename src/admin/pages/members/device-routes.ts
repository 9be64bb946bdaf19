import { Elysia } from "elysia";
import { access } from "../access";
import { decideFromPage, devicePage } from "./device";

export const device = new Elysia({ name: "device" })
  .use(access)
  .get("/device", ({ page }) => devicePage(page), { page: "member" })
  .post("/device", ({ page }) => decideFromPage(page), { page: "member" });
