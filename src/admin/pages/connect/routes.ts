import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { connectPage, keyFromPage } from "./page";

export const connect = new Elysia({ name: "connect" })
  .use(access)
  .get("/connect", ({ page }) => connectPage(page), { page: "member", detail: inMenu("Connect", "rare") })
  .post("/connect", ({ page }) => keyFromPage(page), { page: "member" });
