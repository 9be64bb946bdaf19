import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { curlFromPage, tryPage } from "./page";
import { sendFromPage } from "./send";

export const tryOut = new Elysia({ name: "try" })
  .use(access)
  .get("/try", ({ page }) => tryPage(page), { page: "member", detail: inMenu("Try", "rare") })
  .post("/try", ({ page }) => curlFromPage(page), { page: "member" })
  .post("/try/send", ({ page }) => sendFromPage(page), { page: "member" });
