/** The pages are read in when the first of them is asked for: a start is sooner done without them. */
import { Elysia } from "elysia";
import type { App } from "../../app";
import type { Visitor } from "../../net/guard";
import type { Guard } from "../access/authorize";

export function lazyPages(app: App, admit: Guard, callerOf: (request: Request) => Visitor, exposed: boolean) {
  let pages: Promise<{ handle(request: Request): Promise<Response> }> | undefined;
  const answer = async (request: Request) => {
    pages ??= import("./routes").then(({ adminPages }) => adminPages(app, admit, callerOf, exposed));
    return (await pages).handle(request);
  };
  const wing = new Elysia({ name: "pages-when-asked" });
  for (const path of ["/admin", "/admin/", "/admin/*"])
    wing.all(path, ({ request }) => answer(request), { parse: "none" });
  return wing;
}
