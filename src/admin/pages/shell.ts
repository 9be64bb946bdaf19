/** What all pages need: signing in and out, and their stylesheet, scripts and icon. */
import { Elysia } from "elysia";
import { redirect } from "../ui/page-context";
import { access } from "./access";
import { answerAsset } from "./assets";

export const shell = new Elysia({ name: "shell" })
  .use(access)
  .get("/", () => redirect("/admin"), { page: "everybody" })
  .post("/sign-in", ({ visitors, request, caller }) => visitors.signIn(request, caller), { page: "everybody" })
  // A browser that loads anew what a form has answered.
  .get("/sign-in", () => redirect("/admin"), { page: "everybody" })
  .post("/sign-out", ({ visitors, request }) => visitors.signOut(request), { page: "member" })
  .get("/assets/*", ({ request }) => answerAsset(request), { page: "everybody" });
