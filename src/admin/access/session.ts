/** The session of a browser, by its cookie, which holds a random id and never the key or token. */
import { type AdminSession, type NewSession, type PageSessions, sessionLifetimeMs } from "../../keys/page-sessions";

export interface Sessions {
  /** The session of the request, if any. @throws ProxyError as `PageSessions.find` */
  of(request: Request): Promise<AdminSession | undefined>;
  /** @returns The `set-cookie` header that starts the session. @throws ProxyError as `PageSessions.begin` */
  begin(request: Request, session: NewSession): Promise<string>;
  /** @returns The `set-cookie` header that deletes the cookie. @throws ProxyError as `PageSessions.end` */
  end(request: Request): Promise<string>;
  /** The request has a member's session whose key is not good any more. */
  lostKey(request: Request): boolean;
}

export function openSessions(sessions: PageSessions): Sessions {
  return {
    async of(request) {
      const id = idIn(request);
      return id === undefined ? undefined : sessions.find(id);
    },
    async begin(request, session) {
      return cookie(request, await sessions.begin(session), sessionLifetimeMs / 1_000);
    },
    async end(request) {
      const id = idIn(request);
      if (id !== undefined) await sessions.end(id);
      return cookie(request, "", 0);
    },
    lostKey(request) {
      const id = idIn(request);
      return id !== undefined && sessions.lostKey(id);
    },
  };
}

/** Cookies are shared by all ports of a host, so the name includes the port. */
function nameFor(request: Request): string {
  const port = /:(\d+)$/.exec(request.headers.get("host") ?? "")?.[1] ?? "80";
  return `dragoman_admin_${port}`;
}

function idIn(request: Request): string | undefined {
  const id = new Bun.CookieMap(request.headers.get("cookie") ?? "").get(nameFor(request));
  return id && /^[\w-]{43}$/.test(id) ? id : undefined;
}

function cookie(request: Request, id: string, seconds: number): string {
  const secure = request.headers.get("origin")?.startsWith("https:") ? "; Secure" : "";
  return `${nameFor(request)}=${id}; Path=/admin; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`;
}
