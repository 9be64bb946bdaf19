import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { configPage, confirmConfig, saveConfig } from "./page";

export const config = new Elysia({ name: "config" })
  .use(access)
  .get("/config", ({ ownersPage }) => configPage(ownersPage), { page: "owner", detail: inMenu("Config", "rare") })
  .post("/config", ({ ownersPage }) => confirmConfig(ownersPage), { page: "owner" })
  .post("/config/save", ({ ownersPage }) => saveConfig(ownersPage), { page: "owner" });
