/** Loads the admin pages with the first request for one, so that the server starts faster. */
import { Elysia } from "elysia";
import type { App } from "../../app";
import type { Visitor } from "../../net/guard";
import type { Guard } from "../access/authorize";

export function lazyPages(app: App, guard: Guard, callerOf: (request: Request) => Visitor, exposed: boolean) {
  let pages: Promise<{ handle(request: Request): Promise<Response> }> | undefined;
  const answer = async (request: Request) => {
    pages ??= import("./routes").then(({ adminPages }) => adminPages(app, guard, callerOf, exposed));
    return (await pages).handle(request);
  };
  const plugin = new Elysia({ name: "lazy-pages" });
  for (const path of ["/admin", "/admin/", "/admin/*"])
    plugin.all(path, ({ request }) => answer(request), { parse: "none" });
  return plugin;
}
