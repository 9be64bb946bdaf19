/** Sessions of browsers that signed in to the admin pages. The cookie holds a random id, never the key or token. */
import type { Awaitable } from "../awaitable";
import { BoundedMap } from "../bounded-map";
import { hourMs } from "../format";
import { sha256 } from "../net/credentials";

/** A session, for responses that must end with it. */
export interface AdminSession {
  /** False after it has expired or ended. */
  readonly holds: boolean;
  /** The member's id; null for the owner. */
  readonly member: string | null;
  /** The name of the key that began it; missing for the owner. */
  readonly keyName?: string;
  /** Aborts when the session ends: signed out, replaced by a new session, without its key, or found expired. */
  readonly ended: AbortSignal;
}

/** Who signs in. */
export interface NewSession {
  /** The member's id; null for the owner. */
  member: string | null;
  /** The key or admin token that was sent. The session ends with it. */
  secret: string;
}

export interface PageSessions {
  /** @throws ProxyError `unable` if the session is not known here and cannot be asked for now. */
  find(id: string): Awaitable<AdminSession | undefined>;
  /** @returns The id, 43 characters of base64url. @throws ProxyError `unable` if nobody can sign in now. */
  begin(session: NewSession): Awaitable<string>;
  /** @throws ProxyError `unable` if other servers cannot be reached now. */
  end(id: string): Awaitable<void>;
  /** There is such a session of a member, and the key that began it is not good any more. */
  lostKey(id: string): boolean;
}

export const sessionLifetimeMs = 12 * hourMs;
/** A new session of a person beyond this limit replaces the person's oldest. */
export const maxSessions = 64;

export const newSessionId = (): string => crypto.getRandomValues(Buffer.alloc(32)).toString("base64url");

interface HeldSession {
  member: string | null;
  until: number;
  ending: AbortController;
}

/** For one process; its key or token does not change before it ends. @param now Wall clock, ms. */
export function openMemorySessions(now: () => number): PageSessions {
  const sessions = new BoundedMap<string, HeldSession>(maxSessions, ({ ending }) => ending.abort());
  // Ids are looked up by digest, so that a lookup takes the same time for a wrong id as for a right one.
  const keyOf = (id: string) => sha256(id).toString("hex");
  const drop = (key: string) => {
    sessions.get(key)?.ending.abort();
    sessions.delete(key);
  };
  const isGood = (key: string) => {
    const session = sessions.get(key);
    if (session !== undefined && session.until > now()) return true;
    drop(key);
    return false;
  };
  return {
    find(id) {
      const key = keyOf(id);
      if (!isGood(key)) return undefined;
      const { member, ending } = sessions.get(key)!;
      return {
        get holds() {
          return isGood(key);
        },
        member,
        ended: ending.signal,
      };
    },
    begin({ member }) {
      const id = newSessionId();
      sessions.set(keyOf(id), { member, until: now() + sessionLifetimeMs, ending: new AbortController() });
      return id;
    },
    end: (id) => drop(keyOf(id)),
    lostKey: () => false,
  };
}
