/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The owner's pages: every address under /admin on one page, behind the same door as the admin API. */
import { join } from "node:path";
import { Elysia } from "elysia";
import type { App } from "../../app";
import { asProxyError, ProxyError } from "../../errors";
import type { Caller, Visitor } from "../../net/guard";
import { decodedParams } from "../../net/params";
import type { Guard } from "../access/authorize";
import { readForm } from "../access/form";
import { type AdminSession, openFormToken, openSessions } from "../access/session";
import { ClosedPage, FailurePage, NotFoundPage, SignedInPage, SignInPage } from "../access/sign-in-page";
import { Markup } from "../ui/jsx/jsx-runtime";
import type { Frame } from "../ui/layout";
import { html, htmlInParts, type PageContext, redirect, withSecurityHeaders } from "../ui/page-context";
import type { StreamedPage } from "../ui/streamed-page";
import { accountsPage } from "./accounts/page";
import { configPage, confirmConfig, saveConfig } from "./config/page";
import { openPendingChanges } from "./config/pending-changes";
import { connectPage } from "./connect/page";
import { healthPage } from "./health/page";
import { forgetFromPage, modelsPage } from "./models/page";
import { overviewPage } from "./overview/page";
import { cancelFromPage, requestPage } from "./request/page";
import { exportFromPage, requestsPage, streamRequests } from "./requests/page";

type Shown = Markup | StreamedPage | Response;

interface PageRoute {
  method: "GET" | "POST";
  path: string;
  show: (context: PageContext) => Shown | Promise<Shown>;
}

// biome-ignore format: a table
const pages: PageRoute[] = [
  { method: "GET", path: "/admin", show: overviewPage },
  { method: "GET", path: "/admin/accounts", show: accountsPage },
  { method: "GET", path: "/admin/requests", show: requestsPage },
  { method: "GET", path: "/admin/requests/export", show: exportFromPage },
  { method: "GET", path: "/admin/requests/live", show: streamRequests },
  { method: "GET", path: "/admin/requests/:id", show: requestPage },
  { method: "POST", path: "/admin/requests/:id/cancel", show: cancelFromPage },
  { method: "GET", path: "/admin/models", show: modelsPage },
  { method: "POST", path: "/admin/models/forget", show: forgetFromPage },
  { method: "GET", path: "/admin/connect", show: connectPage },
  { method: "GET", path: "/admin/config", show: configPage },
  { method: "POST", path: "/admin/config", show: confirmConfig },
  { method: "POST", path: "/admin/config/save", show: saveConfig },
  { method: "GET", path: "/admin/health", show: healthPage },
];

/** @param admit Lets a caller without a session in, or throws. */
export function adminPages(app: App, admit: Guard, callerOf: (request: Request) => Visitor, exposed: boolean) {
  const sessions = openSessions(app.now);
  const formToken = openFormToken();
  const changes = openPendingChanges(app.now);
  const started = Date.now().toString(36);
  const frameFor = (request: Request): Frame => ({
    version: app.version,
    demo: app.demo,
    signedIn: sessions.holds(request),
    assets: started,
    formToken: formToken.value,
  });

  /** What a page's address does with a call: the page, or what stands in its place. */
  const serve = async (show: PageRoute["show"], request: Request, given: Record<string, string>) => {
    const caller = callerOf(request);
    const frame = frameFor(request);
    const url = addressOf(request);
    const isRead = request.method !== "POST";
    // Never a page with data in the name of another site, be it as a link.
    if (caller.foreign && isRead) return html(<SignedInPage frame={frame} path={url.pathname + url.search} />);
    let session: AdminSession | undefined;
    try {
      session = enter(request, caller);
    } catch (thrown) {
      return outside(asProxyError(thrown), frame, isRead ? url.pathname + url.search : "/admin");
    }
    try {
      const form = isRead ? new URLSearchParams() : await readForm(request);
      if (!isRead) refuseForged(form);
      const params = decodedParams(given);
      const page = await show({
        app,
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
      return page instanceof Markup ? html(page) : htmlInParts(page, NotFoundPage);
    } catch (thrown) {
      const error = asProxyError(thrown);
      if (error.kind === "internal") app.logger.error("A page could not be shown.", error.details.cause);
      return html(<FailurePage frame={frame} error={error} />, error.status, error.details.headers);
    }
  };

  const enter = (request: Request, caller: Caller) => {
    if (caller.foreign) throw new ProxyError("permission", "A form on another site may not change anything here.");
    const session = sessions.of(request);
    if (!session) admit(request, caller);
    return session;
  };

  const refuseForged = (form: URLSearchParams) => {
    if (!formToken.isRight(form.get("form_token")))
      throw new ProxyError(
        "permission",
        "This form is from before dragoman was started anew. Go back, load the page again, and send it once more.",
      );
  };

  /** Tells the token by the same door as the API does, which also counts the wrong ones. */
  const signIn = async (request: Request) => {
    const frame = frameFor(request);
    let next = "/admin";
    try {
      const caller = callerOf(request);
      if (caller.foreign) throw new ProxyError("permission", "A form on another site may not sign in here.");
      const form = await readForm(request);
      next = pathHere(form.get("next"));
      admit(new Request(request.url, { headers: { "x-admin-token": asHeader(form.get("token")) } }), caller);
      return redirect(next, { "set-cookie": sessions.begin(request) });
    } catch (thrown) {
      const error = asProxyError(thrown);
      if (error.kind !== "authentication") return outside(error, frame, next);
      return html(<SignInPage frame={frame} path={next} wrong={error.message} />, 401);
    }
  };

  const wing = new Elysia({ name: "pages", handler: { standardHostname: false }, strictPath: true });
  // Elysia reads a handler's source to see which fields it needs: they are named in the parameter.
  for (const { method, path, show } of pages)
    wing.route(method, path, ({ request, params }) => serve(show, request, params ?? {}), { parse: "none" });
  wing.post("/admin/sign-in", ({ request }) => signIn(request), { parse: "none" });
  for (const path of ["/admin/", "/admin/sign-in"]) wing.get(path, () => redirect("/admin"));
  const signOut = ({ request }: PageContext) => redirect("/admin", { "set-cookie": sessions.end(request) });
  wing.post("/admin/sign-out", ({ request, params }) => serve(signOut, request, params ?? {}), { parse: "none" });
  wing.get("/admin/assets/*", ({ request }) => asset(request));
  const nothing = () => {
    throw new ProxyError("not_found", "There is no such page.");
  };
  for (const path of ["/admin", "/admin/*"])
    wing.all(path, ({ request, params }) => serve(nothing, request, params ?? {}), { parse: "none" });
  return wing;
}

/** For somebody who was not let in: the way in, where there is one. */
function outside(error: ProxyError, frame: Frame, path: string): Response {
  if (error.kind === "authentication") return html(<SignInPage frame={frame} path={path} />, 401);
  return html(<ClosedPage frame={frame} error={error} />, error.status, error.details.headers);
}

/**
 * Style, script and icon: the same for everybody, and for as long as we run. The plugin reads the folder once and serves
 * nothing else; it must not look after etags itself, as the timer it does that with would keep the process from ending.
 */
let assets: Promise<{ handle(request: Request): Promise<Response> }> | undefined;

async function asset(request: Request): Promise<Response> {
  assets ??= openAssets();
  return withSecurityHeaders(await (await assets).handle(request));
}

async function openAssets() {
  const { staticPlugin } = await import("@elysiajs/static");
  return staticPlugin({
    assets: join(import.meta.dir, "static"),
    prefix: "/admin/assets",
    alwaysStatic: true,
    indexHTML: false,
    etag: false,
    headers: { "cache-control": "public, max-age=31536000, immutable" },
  });
}

/** As the browser has it: a proxy in front of us may speak TLS, and say so. */
function addressOf(request: Request): URL {
  const url = new URL(request.url);
  if (/^https\b/i.test(request.headers.get("x-forwarded-proto") ?? "")) url.protocol = "https:";
  return url;
}

/** Only a path of these pages: a sign-in leads nowhere else. */
const pathHere = (path: string | null) =>
  path !== null && /^\/admin(?:[/?][\w\-./?=&%+:~]*)?$/.test(path) && !path.includes("..") ? path : "/admin";

/** What no header could carry is no token. */
const asHeader = (text: string | null) => (text !== null && /^[!-~]+$/.test(text.trim()) ? text.trim() : "-");
