/** Sessions of browsers that signed in with the admin token. The cookie holds a random ID, never the token. */

import { createHash, randomBytes } from "node:crypto";
import { BoundedMap } from "../../bounded-map";
import { hourMs } from "../../format";
import { includesSecret } from "../../net/credentials";

export interface Sessions {
  /** Whether the request belongs to a session. */
  holds(request: Request): boolean;
  /** The session of the request, if any. */
  of(request: Request): AdminSession | undefined;
  /** @param member Of a member; missing for the owner. @returns The `set-cookie` header that starts the session. */
  begin(request: Request, member?: SessionMember): string;
  /** @returns The `set-cookie` header that deletes the cookie. */
  end(request: Request): string;
}

/** Who signed in with a key. */
export interface SessionMember {
  id: string;
  /** Whether the key is still good. Asked at each use. */
  holds(): boolean;
}

/** A session, for responses that must end with it. */
export interface AdminSession {
  /** False after it has expired or ended. */
  readonly holds: boolean;
  /** The member's id; null for the owner. */
  readonly member: string | null;
  /** Aborts when the session ends: signed out, replaced by a new session, or found expired. */
  readonly ended: AbortSignal;
}

interface StoredSession {
  until: number;
  ending: AbortController;
  member: SessionMember | undefined;
}

const lifetimeMs = 12 * hourMs;
/** A new session beyond this limit replaces the oldest. */
const maxSessions = 64;
const idBytes = 32;

export function openSessions(now: () => number): Sessions {
  /** By digest, so that a lookup takes the same time for a wrong id as for a right one. */
  const sessions = new BoundedMap<string, StoredSession>(maxSessions, ({ ending }) => ending.abort());

  const drop = (key: string) => {
    sessions.get(key)?.ending.abort();
    sessions.delete(key);
  };

  const isGood = (key: string) => {
    const session = sessions.get(key);
    if (session !== undefined && session.until > now() && session.member?.holds() !== false) return true;
    drop(key);
    return false;
  };

  const keyOf = (request: Request) => {
    const id = idIn(request);
    if (id === undefined) return undefined;
    const key = digest(id);
    return isGood(key) ? key : undefined;
  };

  return {
    holds: (request) => keyOf(request) !== undefined,
    of(request) {
      const key = keyOf(request);
      if (key === undefined) return undefined;
      return {
        get holds() {
          return isGood(key);
        },
        member: sessions.get(key)!.member?.id ?? null,
        ended: sessions.get(key)!.ending.signal,
      };
    },
    begin(request, member) {
      const id = randomBytes(idBytes).toString("base64url");
      sessions.set(digest(id), { until: now() + lifetimeMs, ending: new AbortController(), member });
      return cookie(request, id, lifetimeMs / 1_000);
    },
    end(request) {
      const key = keyOf(request);
      if (key !== undefined) drop(key);
      return cookie(request, "", 0);
    },
  };
}

/** The CSRF token in every form of the admin pages. */
export interface FormToken {
  readonly value: string;
  isRight(sent: string | null): boolean;
}

export function openFormToken(): FormToken {
  const value = randomBytes(24).toString("base64url");
  return {
    value,
    isRight: (sent) => includesSecret([sent ?? ""], [value]),
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

const digest = (id: string) => createHash("sha256").update(id).digest("base64url");
