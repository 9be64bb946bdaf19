/** The sign-in of a browser, by its cookie, which is signed and holds neither a key nor the token. */

import { isLoopbackHost } from "../../lib/net/address";
import { browserUrl } from "../../lib/net/in/browser-url";
import {
  type NewPageSignIn,
  type PageSignIn,
  type PageSignIns,
  pageSignInLifetimeMs,
} from "../../people/keys/page-sign-ins";

export interface SignInCookies {
  /** The sign-in of the request, if any. @throws ProxyError as `PageSignIns.find` */
  of(request: Request): Promise<PageSignIn | undefined>;
  /** @returns The `set-cookie` header that starts the sign-in. @throws ProxyError as `PageSignIns.begin` */
  begin(request: Request, signIn: NewPageSignIn): Promise<string>;
  /** @returns The `set-cookie` header that deletes the cookie. @throws ProxyError as `PageSignIns.end` */
  end(request: Request): Promise<string>;
  /** The request has a member's sign-in whose key is not good any more. */
  lostKey(request: Request): boolean;
}

export function openSignInCookies(signIns: PageSignIns): SignInCookies {
  return {
    async of(request) {
      const id = valueIn(request, signInCookie);
      return id === undefined ? undefined : signIns.find(id);
    },
    async begin(request, signIn) {
      return setCookie(request, signInCookie, await signIns.begin(signIn), pageSignInLifetimeMs / 1_000);
    },
    async end(request) {
      const id = valueIn(request, signInCookie);
      if (id !== undefined) await signIns.end(id);
      return setCookie(request, signInCookie, "", 0);
    },
    lostKey(request) {
      const id = valueIn(request, signInCookie);
      return id !== undefined && signIns.lostKey(id);
    },
  };
}

interface OwnCookie {
  name: "admin" | "github";
  value: RegExp;
  /** Where else a page may have been before this one: a cookie of `Strict` is not sent when another site leads here. */
  sameSite: "Strict" | "Lax";
}

const signInCookie: OwnCookie = { name: "admin", value: /^[\w.-]{60,200}$/, sameSite: "Strict" };
/** What a sign-in with GitHub began with; GitHub leads back here. */
export const githubCookie: OwnCookie = { name: "github", value: /^[\w.-]{43,800}$/, sameSite: "Lax" };

/** Cookies are shared by all ports of a host, so the name includes the port. */
function nameFor(request: Request, { name }: OwnCookie): string {
  const port = /:(\d+)$/.exec(request.headers.get("host") ?? "")?.[1] ?? "80";
  return `dragoman_${name}_${port}`;
}

/** A browser keeps such a cookie only if this host itself has set it over TLS; any other may be a sibling's of the same domain. */
const hostPrefix = "__Host-";

/** The cookie's value, if it can be one of ours. */
export function valueIn(request: Request, own: OwnCookie): string | undefined {
  const cookies = new Bun.CookieMap(request.headers.get("cookie") ?? "");
  const name = nameFor(request, own);
  const value = cookies.get(hostPrefix + name) ?? (isOverTls(request) ? undefined : cookies.get(name));
  return value && own.value.test(value) ? value : undefined;
}

/** The `set-cookie` header. */
export function setCookie(request: Request, own: OwnCookie, value: string, seconds: number): string {
  const attributes = `HttpOnly; SameSite=${own.sameSite}; Max-Age=${seconds}`;
  if (isOverTls(request)) return `${hostPrefix}${nameFor(request, own)}=${value}; Path=/; ${attributes}; Secure`;
  return `${nameFor(request, own)}=${value}; Path=/admin; ${attributes}`;
}

/**
 * Whether the browser used TLS, which ends at a proxy. Browsers send `sec-fetch-site` over TLS, and without it to this machine only
 * (https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header).
 */
function isOverTls(request: Request): boolean {
  const { headers } = request;
  const origin = headers.get("origin");
  if (origin !== null) return origin.startsWith("https:");
  return (
    browserUrl(request).protocol === "https:" ||
    (headers.has("sec-fetch-site") && !isLoopbackHost(headers.get("host") ?? ""))
  );
}
