import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { exportFromPage, newRequests, requestsPage, streamRequests } from "./page";

export const requests = new Elysia({ name: "requests" })
  .use(access)
  .get("/requests", ({ page }) => requestsPage(page), { page: "member", detail: inMenu("Requests", "daily") })
  .get("/requests/export", ({ page }) => exportFromPage(page), { page: "member" })
  .get("/requests/new", ({ page }) => newRequests(page), { page: "member" })
  .get("/requests/live", ({ page }) => streamRequests(page), { page: "member" });
