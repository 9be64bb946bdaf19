/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Serves pages: sign-ins, form tokens, who may open a page, and what everybody else is shown. */
import type { Server } from "../../app";
import { asProxyError, ProxyError } from "../../errors";
import { keyGone } from "../../keys/client-keys";
import type { PageSignIn } from "../../keys/page-sign-ins";
import { browserUrl } from "../../net/in/browser-url";
import type { Caller, Visitor } from "../../net/in/guard";
import { decodedParams } from "../../net/in/params";
import { adminGuard, type Guard, type Role } from "../access/authorize";
import { readForm } from "../access/form";
import { type FormTokens, openFormTokens } from "../access/form-token";
import { openSignInCookies, type SignInCookies } from "../access/sign-in-cookie";
import { ClosedPage, FailedPart, FailurePage, SignedInPage, SignInPage } from "../access/sign-in-page";
import { Fragment, Markup } from "../ui/jsx/jsx-runtime";
import type { Frame } from "../ui/layout";
import {
  html,
  htmlInParts,
  type OwnerContext,
  type PageContext,
  redirect,
  withSecurityHeaders,
} from "../ui/page-context";
import type { StreamedPage } from "../ui/streamed-page";
import { assetTag } from "./assets";
import { PendingChanges } from "./config/pending-changes";

type PageResult = Markup | StreamedPage | Response;

/** Renders a page: one that is everybody's, or the owner's. */
export type ShowPage =
  | { role: "member"; show(context: PageContext): PageResult | Promise<PageResult> }
  | { role: "owner"; show(context: OwnerContext): PageResult | Promise<PageResult> };

/** The menu of the pages that a visitor may open. @param member Null for the owner. */
export type MenuFor = (member: string | null, isTeam: boolean) => Frame["menu"];

/** Authorizes whoever asks for a page, and renders the page, the sign-in page or an error page. */
export class PageServer {
  readonly #app: Server;
  readonly #guard: Guard;
  readonly #callerOf: (request: Request) => Visitor;
  readonly #menuFor: MenuFor;
  readonly #changes: PendingChanges;
  readonly #cookies: SignInCookies;
  readonly #formTokens: FormTokens;

  constructor(app: Server, callerOf: (request: Request) => Visitor, menuFor: MenuFor) {
    const { changeKey, formSecret, signIns } = app.pageState;
    this.#app = app;
    this.#guard = adminGuard(app);
    this.#callerOf = callerOf;
    this.#menuFor = menuFor;
    this.#changes = new PendingChanges(changeKey, app.now);
    this.#cookies = openSignInCookies(signIns);
    this.#formTokens = openFormTokens(formSecret, app.now);
  }

  frameFor(pageSignIn?: PageSignIn): Frame {
    const { version, demo, members, environment } = this.#app;
    const member = pageSignIn?.member ?? null;
    return {
      version,
      demo,
      signedIn: pageSignIn !== undefined,
      menu: this.#menuFor(member, members !== undefined),
      hasMembers: members?.needKeys,
      hasAdminToken: environment.adminToken !== undefined,
      member: member === null ? undefined : members?.find(member)?.name,
      assets: assetTag(),
      formToken: this.#formTokens.make(member),
    };
  }

  async serve(
    page: ShowPage,
    request: Request,
    given: Record<string, string>,
    hasForm = request.method === "POST",
  ): Promise<Response> {
    const caller = this.#callerOf(request);
    const url = browserUrl(request);
    const isRead = request.method !== "POST";
    // A request that another site made, even by a link, never gets a page with data.
    if (caller.foreign && isRead)
      return html(<SignedInPage frame={this.frameFor()} path={url.pathname + url.search} />);
    let pageSignIn: PageSignIn | undefined;
    try {
      pageSignIn = await this.#enter(request, caller);
      if (pageSignIn && pageSignIn.member !== null && page.role === "owner") throw ownersPages();
    } catch (thrown) {
      const why = this.#cookies.lostKey(request) ? lostKey : undefined;
      const path = isRead ? url.pathname + url.search : "/admin";
      return deniedPage(asProxyError(thrown), this.frameFor(pageSignIn), path, why);
    }
    const frame = this.frameFor(pageSignIn);
    const asTyped = this.#asTypedBy(caller);
    try {
      const form = hasForm ? await readForm(request) : new URLSearchParams();
      if (hasForm) this.#refuseForged(form, pageSignIn);
      // A form may be sent so slowly that the sign-in ends before it.
      if (pageSignIn && !pageSignIn.holds) throw keyGone();
      caller.connection.keepOpen();
      const member = pageSignIn?.member ?? null;
      const context = {
        ...{ app: this.#app.forMember(member), member, frame, request, caller, pageSignIn, url, form },
        ...{ params: decodedParams(given), changes: this.#changes },
      };
      const shown = await (page.role === "owner"
        ? page.show({ ...context, app: context.app.owner! })
        : page.show(context));
      if (shown instanceof Response) return withSecurityHeaders(shown);
      if (shown instanceof Markup) return html(asTyped(shown));
      const parts = shown.parts.map((part) => async () => asTyped(await part()));
      return htmlInParts({ page: asTyped(shown.page), parts }, FailedPart);
    } catch (thrown) {
      const error = asProxyError(thrown);
      if (error.kind === "internal") this.#app.logger.error("A page could not be shown.", error.details.cause);
      const page = asTyped(<FailurePage frame={frame} path={url.pathname} error={error} />);
      return html(page, error.status, error.details.headers);
    }
  }

  /** Names commands as they can be typed on this machine, for whoever sits at it. */
  #asTypedBy({ local }: Caller): (page: Markup) => Markup {
    const { command } = this.#app;
    if (!local || command === "dragoman") return (page) => page;
    const typed = `<code>${Fragment({ children: command })} `;
    return ({ html }) => new Markup(html.replaceAll("<code>dragoman ", () => typed));
  }

  /** Only who may open the pages learns what there is. */
  refuse(request: Request, error: ProxyError, role: Role): Promise<Response> {
    const show = () => {
      throw error;
    };
    return this.serve({ role, show }, request, {}, false);
  }

  /** Checks the token with the guard of the admin API, which also counts failed attempts. */
  async signIn(request: Request): Promise<Response> {
    const frame = this.frameFor();
    let next = "/admin";
    try {
      const caller = this.#callerOf(request);
      if (caller.foreign)
        throw new ProxyError("permission", `Forms on other sites cannot sign in here.${hintOfTls(caller)}`);
      const form = await readForm(request);
      next = pathHere(form.get("next"));
      const secret = asHeader(form.get("token"));
      const member = this.#guard({ headers: new Headers({ "x-admin-token": secret }) }, caller);
      if (this.#app.members?.findKey([secret])?.isShortLived) throw tokenOfTool();
      return redirect(next, { "set-cookie": await this.#cookies.begin(request, { member, secret }) });
    } catch (thrown) {
      const error = asProxyError(thrown);
      if (error.kind !== "authentication") return deniedPage(error, frame, next);
      return html(<SignInPage frame={frame} path={next} wrong={error.message} />, 401);
    }
  }

  /** @returns The headers that begin a sign-in with a member's new key; none if the browser may open the pages already. */
  async signInWith(request: Request, member: string, secret: string): Promise<Record<string, string>> {
    const isIn = await this.#enter(request, this.#callerOf(request)).then(
      () => true,
      () => false,
    );
    return isIn ? {} : { "set-cookie": await this.#cookies.begin(request, { member, secret }) };
  }

  async signOut(request: Request): Promise<Response> {
    return redirect("/admin", { "set-cookie": await this.#cookies.end(request) });
  }

  /** The sign-in of the request; undefined for a caller who needs none. @throws ProxyError for everybody else. */
  async #enter(request: Request, caller: Caller): Promise<PageSignIn | undefined> {
    if (caller.foreign) throw new ProxyError("permission", "Forms on other sites cannot change anything here.");
    let unknown: unknown;
    try {
      const pageSignIn = await this.#cookies.of(request);
      if (pageSignIn && this.#app.isolation) throw this.#app.isolation;
      if (pageSignIn) return pageSignIn;
    } catch (thrown) {
      unknown = thrown;
    }
    try {
      if (this.#guard(request, caller) !== null) throw ownersPages();
    } catch (thrown) {
      // Who needs no sign-in goes on without; all others learn why theirs does not help now.
      throw unknown ?? thrown;
    }
    return undefined;
  }

  #refuseForged(form: URLSearchParams, pageSignIn: PageSignIn | undefined): void {
    if (!this.#formTokens.isRight(form.get("form_token"), pageSignIn?.member ?? null))
      throw new ProxyError("permission", `${oldForm} Go back, reload the page and submit it again.`);
  }
}

const oldForm = "This form was loaded too long ago, before dragoman restarted, or by another person than you.";

const lostKey =
  "You were signed out, because the key with which you signed in was revoked or has expired. Sign in with another key of yours, or ask the owner of this dragoman for a new invitation link.";

/** For a page of this machine's own over TLS, which a proxy speaks that is not trusted. */
const hintOfTls = ({ origin, host }: Caller) =>
  origin?.startsWith("https:") && host === "loopback"
    ? " If a proxy of yours adds TLS to this address, start dragoman with --trust-proxy and the proxy's address."
    : "";

const tokenOfTool = () =>
  new ProxyError("authentication", "This is the token of a tool, which lasts an hour. Sign in with a key of yours.");

const ownersPages = () =>
  new ProxyError("permission", "This page is the owner's.", {
    code: "owner_only",
  });

/** The sign-in page if a token would help, or else an error page. @param why Why a sign-in has ended. */
function deniedPage(error: ProxyError, frame: Frame, path: string, why?: string): Response {
  if (error.kind === "authentication") return html(<SignInPage frame={frame} path={path} wrong={why} />, 401);
  return html(<ClosedPage frame={frame} error={error} />, error.status, error.details.headers);
}

/** Only paths of these pages, so that signing in cannot redirect to another site. */
const pathHere = (path: string | null) =>
  path !== null && /^\/admin(?:[/?][\w\-./?=&%+:~]*)?$/.test(path) && !path.includes("..") ? path : "/admin";

/** The token, or `-` if a header could not carry it. */
const asHeader = (text: string | null) => (text !== null && /^[!-~]+$/.test(text.trim()) ? text.trim() : "-");
