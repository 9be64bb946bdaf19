/** The pages under /admin, each with who may open it and its name in the menu. */
import type { Server } from "../../app";
import { ProxyError } from "../../errors";
import { type Answers, matcherOf, methodNotAllowed, methodsOf, type Route } from "../../matcher";
import { browserUrl } from "../../net/in/browser-url";
import type { Visitor } from "../../net/in/guard";
import { redirect } from "../ui/page-context";
import { moveFromPage, pauseFromPage, removeFromPage } from "./accounts/forms";
import { accountsPage } from "./accounts/page";
import { beginFromPage, cancelSignInFromPage, signInPage } from "./accounts/sign-in";
import { answerAsset } from "./assets";
import { addBudgetFromPage, budgetsPage, removeBudgetFromPage, testNoticeFromPage } from "./budgets/page";
import { cachePage } from "./cache/page";
import { configPage, confirmConfig, saveConfig } from "./config/page";
import { connectPage, keyFromPage } from "./connect/page";
import { healthPage } from "./health/page";
import { createFromPage, keysPage, revokeFromPage } from "./keys/page";
import { decideFromPage, devicePage } from "./members/device";
import { joinRoutes } from "./members/join";
import { inviteFromPage, membersPage } from "./members/list";
import {
  dismissFromPage,
  limitFromPage,
  linkFromPage,
  memberPage,
  revokeOfMember,
  withdrawFromPage,
} from "./members/member";
import { modelsPage } from "./models/page";
import { overviewPage } from "./overview/page";
import { type MenuFor, PageServer, type ShowPage } from "./page-server";
import { promptsPage } from "./prompts/page";
import { promptPage } from "./prompts/prompt";
import { cancelFromPage, requestPage } from "./request/page";
import { exportFromPage, requestsPage, streamRequests } from "./requests/page";
import { curlFromPage, tryPage } from "./try/page";
import { sendFromPage } from "./try/send";

type PageRoute = Route &
  ShowPage & {
    /** Its name in the menu, which lists the pages in the order of these rows. */
    title?: string;
    /** Only a team has it in its menu. */
    teamOnly?: boolean;
  };

// biome-ignore format: a table
export const pageRoutes: PageRoute[] = [
  { method: "GET", path: "/admin", role: "member", title: "Overview", show: overviewPage },
  { method: "GET", path: "/admin/requests", role: "member", title: "Requests", show: requestsPage },
  { method: "GET", path: "/admin/requests/export", role: "member", show: exportFromPage },
  { method: "GET", path: "/admin/requests/live", role: "member", show: streamRequests },
  { method: "GET", path: "/admin/requests/:id", role: "member", show: requestPage },
  { method: "POST", path: "/admin/requests/:id/cancel", role: "member", show: cancelFromPage },
  { method: "GET", path: "/admin/prompts", role: "member", title: "Prompts", show: promptsPage },
  { method: "GET", path: "/admin/prompts/:id", role: "member", show: promptPage },
  { method: "GET", path: "/admin/accounts", role: "member", title: "Accounts", show: accountsPage },
  { method: "POST", path: "/admin/accounts/sign-in", role: "member", show: beginFromPage },
  { method: "GET", path: "/admin/accounts/sign-in/:id", role: "member", show: signInPage },
  { method: "POST", path: "/admin/accounts/sign-in/:id/cancel", role: "member", show: cancelSignInFromPage },
  { method: "POST", path: "/admin/accounts/pause", role: "member", show: pauseFromPage },
  { method: "POST", path: "/admin/accounts/move", role: "member", show: moveFromPage },
  { method: "POST", path: "/admin/accounts/remove", role: "member", show: removeFromPage },
  { method: "GET", path: "/admin/members", role: "owner", title: "Members", teamOnly: true, show: membersPage },
  { method: "POST", path: "/admin/members", role: "owner", show: inviteFromPage },
  { method: "GET", path: "/admin/members/:name", role: "owner", show: memberPage },
  { method: "POST", path: "/admin/members/:name/limits", role: "owner", show: limitFromPage },
  { method: "POST", path: "/admin/members/:name/invite", role: "owner", show: linkFromPage },
  { method: "POST", path: "/admin/members/:name/withdraw", role: "owner", show: withdrawFromPage },
  { method: "POST", path: "/admin/members/:name/revoke", role: "owner", show: revokeOfMember },
  { method: "POST", path: "/admin/members/:name/remove", role: "owner", show: dismissFromPage },
  { method: "GET", path: "/admin/models", role: "member", title: "Models", show: modelsPage },
  { method: "GET", path: "/admin/cache", role: "member", title: "Cache", show: cachePage },
  { method: "GET", path: "/admin/keys", role: "member", title: "Keys", show: keysPage },
  { method: "POST", path: "/admin/keys", role: "member", show: createFromPage },
  { method: "POST", path: "/admin/keys/revoke", role: "member", show: revokeFromPage },
  { method: "GET", path: "/admin/device", role: "member", show: devicePage },
  { method: "POST", path: "/admin/device", role: "member", show: decideFromPage },
  { method: "GET", path: "/admin/budgets", role: "member", title: "Budgets", show: budgetsPage },
  { method: "POST", path: "/admin/budgets", role: "owner", show: addBudgetFromPage },
  { method: "POST", path: "/admin/budgets/remove", role: "owner", show: removeBudgetFromPage },
  { method: "POST", path: "/admin/notices/test", role: "owner", show: testNoticeFromPage },
  { method: "GET", path: "/admin/connect", role: "member", title: "Connect", show: (context) => connectPage(context) },
  { method: "POST", path: "/admin/connect", role: "member", show: keyFromPage },
  { method: "GET", path: "/admin/try", role: "member", title: "Try", show: tryPage },
  { method: "POST", path: "/admin/try", role: "member", show: curlFromPage },
  { method: "POST", path: "/admin/try/send", role: "member", show: sendFromPage },
  { method: "GET", path: "/admin/config", role: "owner", title: "Config", show: configPage },
  { method: "POST", path: "/admin/config", role: "owner", show: confirmConfig },
  { method: "POST", path: "/admin/config/save", role: "owner", show: saveConfig },
  { method: "GET", path: "/admin/health", role: "owner", title: "Health", show: healthPage },
];

/** A route that answers without the guard of the pages: who may use it is decided where it is defined. */
interface OpenRoute extends Route {
  answer(request: Request, params: Record<string, string>): Response | Promise<Response>;
}

/** Answers the requests for the pages. */
export function pageAnswers(app: Server, callerOf: (request: Request) => Visitor, fail: Answers<Route>["fail"]) {
  const pages = new PageServer(app, callerOf, menuFor);
  const toFront = () => redirect("/admin");
  const rows: (PageRoute | OpenRoute)[] = [
    ...pageRoutes,
    { method: "POST", path: "/admin/sign-out", role: "member", show: ({ request }) => pages.signOut(request) },
    ...joinRoutes({
      ...{ app, callerOf, frameFor: () => pages.frameFor(), urlOf: browserUrl },
      signedIn: (request, member, key) => pages.signInWith(request, member, key),
    }),
    { method: "POST", path: "/admin/sign-in", answer: (request) => pages.signIn(request) },
    { method: "GET", path: "/admin/sign-in", answer: toFront },
    { method: "GET", path: "/admin/", answer: toFront },
    { method: "GET", path: "/admin/assets/*", answer: answerAsset },
  ];
  const notFound = new ProxyError("not_found", "This page does not exist.");
  return matcherOf(rows, {
    answer(row, request, params) {
      return "show" in row ? pages.serve(row, request, params) : row.answer(request, params);
    },
    miss(request, [row, ...others]) {
      if (!row || !("show" in row)) return pages.refuse(request, notFound, "owner");
      return pages.refuse(request, methodNotAllowed(request.method, methodsOf([row, ...others])), row.role);
    },
    fail,
  });
}

const menuFor: MenuFor = (member, isTeam) =>
  pageRoutes.flatMap(({ path, title, role, teamOnly = false }) =>
    title !== undefined && (member === null || role === "member") && (isTeam || !teamOnly) ? [{ path, title }] : [],
  );
