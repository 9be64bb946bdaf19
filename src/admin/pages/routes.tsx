/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The routes of the admin pages under /admin, protected by the same guard as the admin API. */
import type { App } from "../../app";
import { asProxyError, ProxyError } from "../../errors";
import { keyGone } from "../../keys/client-keys";
import type { AdminSession } from "../../keys/page-sessions";
import { type Answers, matcherOf, methodNotAllowed, methodsOf, type Route } from "../../matcher";
import type { Caller, Visitor } from "../../net/in/guard";
import { decodedParams } from "../../net/in/params";
import { adminGuard, type Guard, type Role } from "../access/authorize";
import { readForm } from "../access/form";
import { openFormTokens } from "../access/form-token";
import { openSessions } from "../access/session";
import { ClosedPage, FailedPart, FailurePage, SignedInPage, SignInPage } from "../access/sign-in-page";
import { browserUrl } from "../browser-url";
import { Markup } from "../ui/jsx/jsx-runtime";
import type { Frame } from "../ui/layout";
import { html, htmlInParts, type PageContext, redirect, withSecurityHeaders } from "../ui/page-context";
import type { StreamedPage } from "../ui/streamed-page";
import { moveFromPage, pauseFromPage, removeFromPage } from "./accounts/forms";
import { accountsPage } from "./accounts/page";
import { beginFromPage, cancelSignInFromPage, signInPage } from "./accounts/sign-in";
import { answerAsset, assetTag } from "./assets";
import { addBudgetFromPage, budgetsPage, removeBudgetFromPage, testNoticeFromPage } from "./budgets/page";
import { cachePage } from "./cache/page";
import { configPage, confirmConfig, saveConfig } from "./config/page";
import { PendingChanges } from "./config/pending-changes";
import { connectPage } from "./connect/page";
import { healthPage } from "./health/page";
import { createFromPage, keysPage, revokeFromPage } from "./keys/page";
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
import { forgetFromPage, modelsPage } from "./models/page";
import { overviewPage } from "./overview/page";
import { cancelFromPage, requestPage } from "./request/page";
import { exportFromPage, requestsPage, streamRequests } from "./requests/page";
import { curlFromPage, tryPage } from "./try/page";
import { sendFromPage } from "./try/send";

type PageResult = Markup | StreamedPage | Response;

interface PageRoute extends Route {
  role: Role;
  /** Its name in the menu, which lists the pages in the order of these rows. */
  title?: string;
  /** Only a team has it in its menu. */
  teamOnly?: boolean;
  show: (context: PageContext) => PageResult | Promise<PageResult>;
}

// biome-ignore format: a table
export const pageRoutes: PageRoute[] = [
  { method: "GET", path: "/admin", role: "member", title: "Overview", show: overviewPage },
  { method: "GET", path: "/admin/requests", role: "member", title: "Requests", show: requestsPage },
  { method: "GET", path: "/admin/requests/export", role: "member", show: exportFromPage },
  { method: "GET", path: "/admin/requests/live", role: "member", show: streamRequests },
  { method: "GET", path: "/admin/requests/:id", role: "member", show: requestPage },
  { method: "POST", path: "/admin/requests/:id/cancel", role: "member", show: cancelFromPage },
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
  { method: "POST", path: "/admin/models/forget", role: "owner", show: forgetFromPage },
  { method: "GET", path: "/admin/cache", role: "member", title: "Cache", show: cachePage },
  { method: "GET", path: "/admin/keys", role: "member", title: "Keys", show: keysPage },
  { method: "POST", path: "/admin/keys", role: "member", show: createFromPage },
  { method: "POST", path: "/admin/keys/revoke", role: "member", show: revokeFromPage },
  { method: "GET", path: "/admin/budgets", role: "member", title: "Budgets", show: budgetsPage },
  { method: "POST", path: "/admin/budgets", role: "owner", show: addBudgetFromPage },
  { method: "POST", path: "/admin/budgets/remove", role: "owner", show: removeBudgetFromPage },
  { method: "POST", path: "/admin/notices/test", role: "owner", show: testNoticeFromPage },
  { method: "GET", path: "/admin/connect", role: "member", title: "Connect", show: connectPage },
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
export function pageAnswers(
  app: App,
  callerOf: (request: Request) => Visitor,
  exposed: boolean,
  fail: Answers<Route>["fail"],
) {
  const { serve, refuse, signIn, signOut, frameFor } = openPageServer(app, adminGuard(app), callerOf, exposed);
  const toFront = () => redirect("/admin");
  const open: OpenRoute[] = [
    ...joinRoutes({ app, callerOf, frameFor, urlOf: browserUrl }),
    { method: "POST", path: "/admin/sign-in", answer: signIn },
    { method: "GET", path: "/admin/sign-in", answer: toFront },
    { method: "GET", path: "/admin/", answer: toFront },
    { method: "GET", path: "/admin/assets/*", answer: answerAsset },
  ];
  const rows: (PageRoute | OpenRoute)[] = [
    ...pageRoutes,
    { method: "POST", path: "/admin/sign-out", role: "member", show: signOut },
    ...open,
  ];
  const notFound = new ProxyError("not_found", "This page does not exist.");
  return matcherOf(rows, {
    answer(row, request, params) {
      return "show" in row ? serve(row.show, request, params, row.role) : row.answer(request, params);
    },
    miss(request, [row, ...others]) {
      if (!row || !("show" in row)) return refuse(request, notFound, "owner");
      return refuse(request, methodNotAllowed(request.method, methodsOf([row, ...others])), row.role);
    },
    fail,
  });
}

/** The menu of the pages that a visitor may open. */
const menuFor = (member: string | null, isTeam: boolean) =>
  pageRoutes.flatMap(({ path, title, role, teamOnly = false }) =>
    title !== undefined && (member === null || role === "member") && (isTeam || !teamOnly) ? [{ path, title }] : [],
  );

function openPageServer(app: App, guard: Guard, callerOf: (request: Request) => Visitor, exposed: boolean) {
  const { changeKeys, formSecrets } = app.pageState;
  const changes = new PendingChanges(changeKeys, app.now);
  const sessions = openSessions(app.pageState.sessions);
  const formTokens = openFormTokens(formSecrets, app.now);
  const frameFor = (session?: AdminSession): Frame => {
    const member = session?.member ?? null;
    return {
      version: app.version,
      demo: app.demo,
      signedIn: session !== undefined,
      menu: menuFor(member, app.members !== undefined),
      hasMembers: app.members?.needKeys,
      hasAdminToken: app.environment.adminToken !== undefined,
      member: member === null ? undefined : app.members?.find(member)?.name,
      assets: assetTag(),
      formToken: formTokens.make(member),
    };
  };

  /** Authorizes the request and renders the page, the sign-in page or an error page. */
  const serve = async (
    show: PageRoute["show"],
    request: Request,
    given: Record<string, string>,
    role: Role,
    hasForm = request.method === "POST",
  ) => {
    const caller = callerOf(request);
    const url = browserUrl(request);
    const isRead = request.method !== "POST";
    // A request that another site made, even by a link, never gets a page with data.
    if (caller.foreign && isRead) return html(<SignedInPage frame={frameFor()} path={url.pathname + url.search} />);
    let session: AdminSession | undefined;
    try {
      session = await enter(request, caller);
      if (session && session.member !== null && role === "owner") throw ownersPages();
    } catch (thrown) {
      const why = sessions.lostKey(request) ? lostKey : undefined;
      return deniedPage(asProxyError(thrown), frameFor(session), isRead ? url.pathname + url.search : "/admin", why);
    }
    const frame = frameFor(session);
    try {
      const form = hasForm ? await readForm(request) : new URLSearchParams();
      if (hasForm) refuseForged(form, session);
      // A form may be sent so slowly that the session ends before it.
      if (session && !session.holds) throw keyGone();
      caller.connection.keepOpen();
      const params = decodedParams(given);
      const page = await show({
        app: app.forMember(session?.member ?? null),
        member: session?.member ?? null,
        frame,
        request,
        caller,
        session,
        url,
        params,
        form,
        exposed,
        changes,
      });
      if (page instanceof Response) return withSecurityHeaders(page);
      return page instanceof Markup ? html(page) : htmlInParts(page, FailedPart);
    } catch (thrown) {
      const error = asProxyError(thrown);
      if (error.kind === "internal") app.logger.error("A page could not be shown.", error.details.cause);
      return html(<FailurePage frame={frame} error={error} />, error.status, error.details.headers);
    }
  };

  /** Only who may open the pages learns what there is. */
  const refuse = (request: Request, error: ProxyError, role: Role) => {
    const show = () => {
      throw error;
    };
    return serve(show, request, {}, role, false);
  };

  const enter = async (request: Request, caller: Caller): Promise<AdminSession | undefined> => {
    if (caller.foreign) throw new ProxyError("permission", "Forms on other sites cannot change anything here.");
    let unknown: unknown;
    try {
      const session = await sessions.of(request);
      if (session && app.isolation) throw app.isolation;
      if (session) return session;
    } catch (thrown) {
      unknown = thrown;
    }
    try {
      if (guard(request, caller) !== null) throw ownersPages();
    } catch (thrown) {
      // Who needs no session goes on without; all others learn why theirs does not help now.
      throw unknown ?? thrown;
    }
    return undefined;
  };

  const refuseForged = (form: URLSearchParams, session: AdminSession | undefined) => {
    if (!formTokens.isRight(form.get("form_token"), session?.member ?? null))
      throw new ProxyError("permission", `${oldForm} Go back, reload the page and submit it again.`);
  };

  /** Checks the token with the guard of the admin API, which also counts failed attempts. */
  const signIn = async (request: Request) => {
    const frame = frameFor();
    let next = "/admin";
    try {
      const caller = callerOf(request);
      if (caller.foreign) throw new ProxyError("permission", "Forms on other sites cannot sign in here.");
      const form = await readForm(request);
      next = pathHere(form.get("next"));
      const secret = asHeader(form.get("token"));
      const member = guard({ headers: new Headers({ "x-admin-token": secret }) }, caller);
      return redirect(next, { "set-cookie": await sessions.begin(request, { member, secret }) });
    } catch (thrown) {
      const error = asProxyError(thrown);
      if (error.kind !== "authentication") return deniedPage(error, frame, next);
      return html(<SignInPage frame={frame} path={next} wrong={error.message} />, 401);
    }
  };

  const signOut = async ({ request }: PageContext) => redirect("/admin", { "set-cookie": await sessions.end(request) });

  return { serve, refuse, signIn, signOut, frameFor };
}

const oldForm = "This form was loaded too long ago, before dragoman restarted, or by another person than you.";

const lostKey =
  "You were signed out, because the key with which you signed in was revoked or has expired. Sign in with another key of yours, or ask the owner of this dragoman for a new invitation link.";

const ownersPages = () =>
  new ProxyError("permission", "This page is the owner's.", {
    code: "owner_only",
  });

/** The sign-in page if a token would help, or else an error page. @param why Why a session has ended. */
function deniedPage(error: ProxyError, frame: Frame, path: string, why?: string): Response {
  if (error.kind === "authentication") return html(<SignInPage frame={frame} path={path} wrong={why} />, 401);
  return html(<ClosedPage frame={frame} error={error} />, error.status, error.details.headers);
}

/** Only paths of these pages, so that signing in cannot redirect to another site. */
const pathHere = (path: string | null) =>
  path !== null && /^\/admin(?:[/?][\w\-./?=&%+:~]*)?$/.test(path) && !path.includes("..") ? path : "/admin";

/** The token, or `-` if a header could not carry it. */
const asHeader = (text: string | null) => (text !== null && /^[!-~]+$/.test(text.trim()) ? text.trim() : "-");
