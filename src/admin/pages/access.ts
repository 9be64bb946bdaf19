/** The macro by which a route says who may open its page, and what a route says of itself for the menu. */
import { type AnyElysia, type DocumentDecoration, Elysia } from "elysia";
import type { Visitor } from "../../lib/net/in/caller";
import type { Server } from "../../parts/app";
import { unread } from "../../web/context";
import { accessDetail, accessOf } from "../../web/described";
import type { Role } from "../access/authorize";
import type { OwnerContext, PageContext } from "../ui/page-context";
import type { PageResult, Visitors } from "./visitors";

/** The members that every handler finds in its context besides Elysia's own. */
// Elysia wants an index signature, which an interface lacks.
export type Asked = {
  /** The running server, whoever asks. Like the next two, set before routing. */
  dragoman: Server;
  caller: Visitor;
  visitors: Visitors;
  /** What a page gets. Missing where everybody may ask. */
  page: PageContext;
  /** The same for a page of the owner's, and missing at any other. */
  ownersPage: OwnerContext;
};

export const access = new Elysia({ name: "page-access" }).decorate({} as Asked).macro({
  /** `everybody`: the handler sees to it. */
  page: (opener: Role | "everybody") => ({
    ...unread,
    detail: accessDetail(opener),
    // Elysia reads in a function's text whether it is to be waited for, and lets everybody in where it does not see that: this
    // must stay an `async` function, and an arrow: it does not understand a minified method.
    transform: async (context) => {
      const { visitors, request, caller } = context;
      if (opener === "everybody") return;
      context.page = await visitors.admit(request, caller, opener);
      await visitors.read(context.page, context.params);
      if (opener === "owner") context.ownersPage = { ...context.page, app: context.page.app.owner! };
    },
    mapResponse: async ({ visitors, page, responseValue }) => {
      // Elysia reads in the handler's text whether it is to be waited for.
      const result = (await responseValue) as PageResult;
      return page ? visitors.shown(page, result) : (result as Response);
    },
  }),
});

/** A page as its route describes it. */
export interface PageEndpoint {
  method: "GET" | "POST";
  /** Parameters as `/:name`. */
  path: string;
  role: Role;
  /** Its name in the menu; undefined for a page that is not there. */
  title?: string;
  /** Only a team has it in its menu. */
  teamOnly?: boolean;
  /** Where in the menu it stands. */
  group?: MenuGroup;
}

/** What one looks at, what one sets up, and what is rarely needed. */
export const menuGroups = ["daily", "setup", "rare"] as const;
type MenuGroup = (typeof menuGroups)[number];

const menuMember = "x-menu";

/** The `detail` of a page that is in the menu, which lists the pages of a group in the order of their routes. */
export const inMenu = (title: string, group: MenuGroup, { teamOnly = false } = {}) =>
  ({ [menuMember]: { title, group, teamOnly } }) as DocumentDecoration;

/** The pages of an app that have visitors: all but those for everybody. */
export const pagesOf = ({ routes }: Pick<AnyElysia, "routes">): PageEndpoint[] =>
  routes.flatMap(({ method, path, hooks }) => {
    const role = accessOf(hooks) as Role | "everybody";
    if (role === "everybody") return [];
    const inMenu = (hooks.detail as { [menuMember]?: Pick<PageEndpoint, "title" | "group" | "teamOnly"> })[menuMember];
    return [{ method: method as PageEndpoint["method"], path, role, ...inMenu }];
  });
