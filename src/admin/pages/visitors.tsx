/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Who comes to the pages: lets them in, signs them in and out, and shows them a page, or why not. */

import { asProxyError, ProxyError } from "../../lib/errors";
import { browserUrl } from "../../lib/net/in/browser-url";
import type { Caller, Visitor } from "../../lib/net/in/caller";
import { decodedParams } from "../../lib/net/in/params";
import type { Server } from "../../parts/app";
import { webAppOf } from "../../people/accounts/web-flow";
import { keyGone } from "../../people/keys/client-keys";
import type { PageSignIn } from "../../people/keys/page-sign-ins";
import { type Authorizer, authorizerOf, type Role } from "../access/authorize";
import { readForm } from "../access/form";
import { type FormTokens, openFormTokens } from "../access/form-token";
import { openSignInCookies, type SignInCookies } from "../access/sign-in-cookie";
import { ClosedPage, FailedPart, FailurePage, SignedInPage, SignInPage } from "../access/sign-in-page";
import { Fragment, Markup } from "../ui/jsx/jsx-runtime";
import type { Frame } from "../ui/layout";
import { html, htmlInParts, type PageContext, redirect, withSecurityHeaders } from "../ui/page-context";
import type { StreamedPage } from "../ui/streamed-page";
import { assetTag } from "./assets";
import { PendingChanges } from "./config/pending-changes";

/** What a page gives to be shown. */
export type PageResult = Markup | StreamedPage | Response;

/** Thrown at whoever is not let in, with what they see instead of the page. */
export class Denied extends Error {
  constructor(readonly response: Response) {
    super();
  }
}

export class Visitors {
  readonly #app: Server;
  readonly #authorize: Authorizer;
  readonly #menuFor: (member: string | null, isTeam: boolean) => Frame["menu"];
  readonly #changes: PendingChanges;
  readonly #cookies: SignInCookies;
  readonly #formTokens: FormTokens;

  /** @param menuFor The pages that somebody may open. `member` is null for the owner. */
  constructor(app: Server, menuFor: (member: string | null, isTeam: boolean) => Frame["menu"]) {
    const { changeKey, formSecret, signIns } = app.pageState;
    this.#app = app;
    this.#authorize = authorizerOf(app);
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
      hasGithub: members?.needKeys && webAppOf(environment) !== undefined,
      hasAdminToken: environment.adminToken !== undefined,
      member: member === null ? undefined : members?.find(member)?.name,
      assets: assetTag(),
      formToken: this.#formTokens.make(member),
    };
  }

  /** What a page of this role gets, without a form or parameters yet. @throws Denied at everybody who may not open it. */
  async admit(request: Request, caller: Visitor, role: Role): Promise<PageContext> {
    const url = browserUrl(request);
    const isRead = request.method !== "POST";
    // A request that another site made, even by a link, never gets a page with data.
    if (caller.foreign && isRead)
      throw new Denied(html(<SignedInPage frame={this.frameFor()} path={url.pathname + url.search} />));
    let pageSignIn: PageSignIn | undefined;
    try {
      pageSignIn = await this.#enter(request, caller);
      if (pageSignIn && pageSignIn.member !== null && role === "owner") throw ownersPages();
    } catch (thrown) {
      const why = this.#cookies.lostKey(request) ? lostKey : undefined;
      const path = isRead ? url.pathname + url.search : "/admin";
      throw new Denied(deniedPage(asProxyError(thrown), this.frameFor(pageSignIn), path, why));
    }
    const member = pageSignIn?.member ?? null;
    return {
      app: this.#app.forMember(member),
      member,
      frame: this.frameFor(pageSignIn),
      request,
      caller,
      pageSignIn,
      url,
      params: {},
      form: new URLSearchParams(),
      changes: this.#changes,
    };
  }

  /**
   * Reads into a page's context what was sent to it: the form of a POST, and the parameters of the path.
   * @throws ProxyError For a form without its token, and as `readForm` and `decodedParams`.
   */
  async read(page: PageContext, params: Record<string, string | null> | undefined): Promise<void> {
    const { request, caller, pageSignIn } = page;
    if (request.method === "POST") {
      page.form = await readForm(request);
      this.#refuseForged(page.form, pageSignIn);
    }
    // A form may be sent so slowly that the sign-in ends before it.
    await pageSignIn?.hear();
    if (pageSignIn && !pageSignIn.holds) throw keyGone();
    caller.connection.keepOpen();
    page.params = decodedParams(params);
  }

  shown({ caller }: PageContext, result: PageResult): Response {
    if (result instanceof Response) return withSecurityHeaders(result);
    const asTyped = this.#asTypedBy(caller);
    if (result instanceof Markup) return html(asTyped(result));
    const parts = result.parts.map((part) => async () => asTyped(await part()));
    return htmlInParts({ page: asTyped(result.page), parts }, FailedPart);
  }

  /** A page that says why the one that was asked for cannot be shown. */
  failed({ frame, url, caller }: PageContext, thrown: unknown): Response {
    const error = asProxyError(thrown);
    if (error.kind === "internal") this.#app.logger.error("A page could not be shown.", error.details.cause);
    const page = <FailurePage frame={frame} path={url.pathname} error={error} />;
    return html(this.#asTypedBy(caller)(page), error.status, error.details.headers);
  }

  /** Names commands as they can be typed on this machine, for whoever sits at it. */
  #asTypedBy({ local }: Caller): (page: Markup) => Markup {
    const { command } = this.#app;
    if (!local || command === "dragoman") return (page) => page;
    const typed = `<code>${Fragment({ children: command })} `;
    return ({ html }) => new Markup(html.replaceAll("<code>dragoman ", () => typed));
  }

  /** Only who may open a page of this role learns of the error. */
  async refuse(request: Request, caller: Visitor, error: ProxyError, role: Role): Promise<Response> {
    try {
      return this.failed(await this.admit(request, caller, role), error);
    } catch (thrown) {
      if (thrown instanceof Denied) return thrown.response;
      throw thrown;
    }
  }

  /** Checks the token as the admin API does, which also counts failed attempts. */
  async signIn(request: Request, caller: Caller): Promise<Response> {
    const frame = this.frameFor();
    let next = "/admin";
    try {
      if (caller.foreign)
        throw new ProxyError("permission", `Forms on other sites cannot sign in here.${hintOfTls(caller)}`);
      const form = await readForm(request);
      next = pathHere(form.get("next"));
      const secret = asHeader(form.get("token"));
      const member = await this.#authorize({ headers: new Headers({ "x-admin-token": secret }) }, caller);
      if (this.#app.members?.findKey([secret])?.isShortLived) throw tokenOfTool();
      return redirect(next, { "set-cookie": await this.#cookies.begin(request, { member, secret }) });
    } catch (thrown) {
      const error = asProxyError(thrown);
      if (error.kind !== "authentication") return deniedPage(error, frame, next);
      return html(<SignInPage frame={frame} path={next} wrong={error.message} />, 401);
    }
  }

  /** @param secret As in `NewPageSignIn`. @returns The headers that begin a member's sign-in, in place of any other of the browser. */
  async signInAs(request: Request, member: string, secret: string | Uint8Array): Promise<Record<string, string>> {
    return { "set-cookie": await this.#cookies.begin(request, { member, secret }) };
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
      if (pageSignIn?.member === null) await this.#app.members?.hearAll();
      if (pageSignIn) return pageSignIn;
    } catch (thrown) {
      unknown = thrown;
    }
    try {
      if ((await this.#authorize(request, caller)) !== null) throw ownersPages();
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
export const pathHere = (path: string | null) =>
  path !== null && /^\/admin(?:[/?][\w\-./?=&%+:~]*)?$/.test(path) && !path.includes("..") ? path : "/admin";

/** The token, or `-` if a header could not carry it. */
const asHeader = (text: string | null) => (text !== null && /^[!-~]+$/.test(text.trim()) ? text.trim() : "-");
