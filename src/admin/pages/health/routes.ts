import { Elysia } from "elysia";
import { access, inMenu } from "../access";
import { healthPage } from "./page";

export const health = new Elysia({ name: "health" })
  .use(access)
  .get("/health", ({ ownersPage }) => healthPage(ownersPage), { page: "owner", detail: inMenu("Health", "rare") });
