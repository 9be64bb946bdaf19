/** The pages under /admin: an Elysia app of their own. */
import { Elysia, NotFoundError } from "elysia";
import { ProxyError } from "../../lib/errors";
import { lazy } from "../../lib/lazy";
import { pathOfUrl } from "../../lib/net/in/params";
import type { Server } from "../../parts/app";
import { appOptions, visitOf } from "../../web/context";
import { Paths } from "../../web/paths";
import type { Role } from "../access/authorize";
import type { Frame } from "../ui/layout";
import type { PageContext } from "../ui/page-context";
import { access, menuGroups, type PageEndpoint, pagesOf } from "./access";
import { accounts } from "./accounts/routes";
import { budgets } from "./budgets/routes";
import { cache } from "./cache/routes";
import { config } from "./config/routes";
import { connect } from "./connect/routes";
import { health } from "./health/routes";
import { keys } from "./keys/routes";
import { device } from "./members/device-routes";
import { github } from "./members/github";
import { join } from "./members/join";
import { members } from "./members/routes";
import { models } from "./models/routes";
import { overview } from "./overview/routes";
import { prompts } from "./prompts/routes";
import { request } from "./request/routes";
import { requests } from "./requests/routes";
import { shell } from "./shell";
import { tryOut } from "./try/routes";
import { Denied, Visitors } from "./visitors";

/** A feature is a plugin: without its line here it is gone. The menu has this order. */
const features = new Elysia({ name: "page-features", prefix: "/admin" })
  .use(overview)
  .use(requests)
  .use(request)
  .use(prompts)
  .use(accounts)
  .use(members)
  .use(models)
  .use(cache)
  .use(keys)
  .use(device)
  .use(budgets)
  .use(connect)
  .use(tryOut)
  .use(config)
  .use(health)
  .use(join)
  .use(github)
  .use(shell);

/** Every page, with its role and its name in the menu. */
export const pageEndpoints = lazy((): PageEndpoint[] => pagesOf(features));

/** @param fail The answer for an error at a path that everybody may ask. */
export function adminPages(server: Server, fail: (thrown: unknown, request: Request) => Response) {
  const visitors = new Visitors(server, menuFor);
  return new Elysia({ name: "pages", ...appOptions })
    .use(access)
    .onRequest((context) => {
      context.dragoman = server;
      context.caller = visitOf(context.request)!.caller!;
      context.visitors = visitors;
    })
    .onError(async ({ error, request, caller, page, set }) => {
      // With any other status Elysia 1.4.30 makes a new response of this one, which loses its length, or its status if that is 200.
      set.status = 200;
      if (error instanceof Denied) return error.response;
      if (error instanceof NotFoundError) return visitors.refuse(request, caller, ...refusalOf(request));
      // Without a page there is nobody who was let in.
      return (page as PageContext | undefined) ? visitors.failed(page, error) : fail(error, request);
    })
    .use(features);
}

/** @param member Null for the owner. */
const menuFor = (member: string | null, isTeam: boolean): Frame["menu"] =>
  menuGroups.map((group) =>
    pageEndpoints().flatMap(({ path, title, role, teamOnly = false, group: own }) =>
      own === group && title !== undefined && (member === null || role === "member") && (isTeam || !teamOnly)
        ? [{ path, title }]
        : [],
    ),
  );

const paths = new Paths(pageEndpoints);

/** The error for a request that no route answers, and who may learn it. */
function refusalOf({ method, url }: Request): [error: ProxyError, role: Role] {
  const path = pathOfUrl(url);
  const error = paths.wrongMethod(method, path) ?? new ProxyError("not_found", "This page does not exist.");
  return [error, paths.at(path)?.[0]?.role ?? "owner"];
}
