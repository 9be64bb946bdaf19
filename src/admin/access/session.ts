/** Browsers that have shown the admin token: each holds a random id in a cookie, never the token itself. */
import { createHash, randomBytes } from "node:crypto";
import { includesSecret } from "../../net/credentials";

export interface Sessions {
  /** Whether the request comes from a browser that has signed in. */
  holds(request: Request): boolean;
  /** The session that the request belongs to; undefined where there is none. */
  of(request: Request): AdminSession | undefined;
  /** @returns The header that gives the browser its cookie. */
  begin(request: Request): string;
  /** @returns The header that takes the cookie back. */
  end(request: Request): string;
}

/** What lives no longer than the sign-in it belongs to. */
export interface AdminSession {
  /** False once it has run out, or was ended. */
  readonly holds: boolean;
  /** Aborts when it ends: signed out, forgotten for a new one, or found to have run out. */
  readonly ended: AbortSignal;
}

const lifetimeMs = 12 * 3600_000;
/** The oldest is forgotten for a new one. */
const maxSessions = 64;
const idBytes = 32;

export function openSessions(now: () => number): Sessions {
  /** By digest, so that looking one up takes as long for a wrong id as for a right one. */
  const known = new Map<string, { until: number; ending: AbortController }>();

  const forget = (key: string) => {
    known.get(key)?.ending.abort();
    known.delete(key);
  };

  const isGood = (key: string) => {
    const session = known.get(key);
    if (session !== undefined && session.until > now()) return true;
    forget(key);
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
        ended: known.get(key)!.ending.signal,
      };
    },
    begin(request) {
      const id = randomBytes(idBytes).toString("base64url");
      if (known.size >= maxSessions) forget(known.keys().next().value!);
      known.set(digest(id), { until: now() + lifetimeMs, ending: new AbortController() });
      return cookie(request, id, lifetimeMs / 1_000);
    },
    end(request) {
      const key = keyOf(request);
      if (key !== undefined) forget(key);
      return cookie(request, "", 0);
    },
  };
}

/** What a form of ours carries, so that only our own pages can send one. */
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

/** Browsers share cookies among the ports of a host: the port in the name keeps two proxies apart. */
function nameFor(request: Request): string {
  const port = /:(\d+)$/.exec(request.headers.get("host") ?? "")?.[1] ?? "80";
  return `dragoman_admin_${port}`;
}

function idIn(request: Request): string | undefined {
  const name = nameFor(request);
  const pairs = (request.headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  const found = pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
  return found === undefined || !/^[\w-]{43}$/.test(found) ? undefined : found;
}

function cookie(request: Request, id: string, seconds: number): string {
  const secure = request.headers.get("origin")?.startsWith("https:") ? "; Secure" : "";
  return `${nameFor(request)}=${id}; Path=/admin; HttpOnly; SameSite=Strict; Max-Age=${seconds}${secure}`;
}

const digest = (id: string) => createHash("sha256").update(id).digest("base64url");
