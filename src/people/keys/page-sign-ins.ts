/**
 * Sign-ins of browsers to the admin pages. The cookie says who signed in and until when, signed by this server or,
 * in a team, by a key that all servers have. So nothing is stored but which sign-ins were ended before their time.
 */
import { type Awaitable, whenKnown } from "../../lib/awaitable";
import { BoundedMap } from "../../lib/bounded-map";
import { hourMs } from "../../lib/format";
import { includesSecret, sha256 } from "../../lib/net/in/credentials";
import { type ClientKey, isExpired } from "./client-keys";
import type { Members } from "./members";

/** A sign-in, for responses that must end with it. */
export interface PageSignIn {
  /** False after it has expired or ended, as far as that is known here. */
  readonly holds: boolean;
  /** Makes the answer of `holds` a second old at most. @throws ProxyError `unable` */
  hear(): Awaitable<void>;
  /** The member's id; null for the owner. */
  readonly member: string | null;
  /** The name of the key that began it; missing for the owner. */
  readonly keyName?: string;
}

/** Who signs in. */
export interface NewPageSignIn {
  /** The member's id; null for the owner. */
  member: string | null;
  /** The key or admin token that was sent, or the SHA-256 of a member's key. The sign-in ends with it. */
  secret: string | Uint8Array;
}

/** The sign-ins that were ended, by the SHA-256 of the cookie's value in hexadecimal. */
export interface EndedPageSignIns {
  /** As far as was heard. */
  has(digest: string): boolean;
  /** Asks the database, where other servers may have ended it. Missing where there are none. */
  hear?(digest: string): Awaitable<void>;
  /** @param until When it would have ended by itself, Unix ms. @throws ProxyError `unable` if other servers cannot be reached now. */
  add(digest: string, until: number): Awaitable<void>;
}

interface PageSignInOptions {
  secret: Uint8Array;
  /** A name of this server's own. A sign-in of who needed no token on its machine holds at no other server. */
  server: string;
  /** Wall clock, ms. */
  now(): number;
  /** This server's. A sign-in that began with another one does not hold here. */
  adminToken?: string;
  ended: EndedPageSignIns;
  keys?: PageSignInKeys | undefined;
}

/** The members' keys. */
export type PageSignInKeys = Pick<Members, "keyWith" | "hearOf">;

interface Claims {
  member: string | null;
  /** The SHA-256 of the member's key. */
  credential: Buffer;
  until: number;
}

export const pageSignInLifetimeMs = 12 * hourMs;

/** A sign-in of the owner was begun by somebody with the admin token, or on the server's own machine, where none is needed. */
const [byToken, byPlace] = ["token", "place"];
const owner = "owner";

export class PageSignIns {
  readonly #options: PageSignInOptions;

  constructor(options: PageSignInOptions) {
    this.#options = options;
  }

  /** @param id The cookie's value. */
  find(id: string): Awaitable<PageSignIn | undefined> {
    const claims = this.#read(id);
    return claims && whenKnown(this.#hear(id, claims), () => this.#signInOf(id, claims));
  }

  /** @returns The cookie's value. */
  begin({ member, secret }: NewPageSignIn): string {
    const { adminToken, now } = this.#options;
    const digest = typeof secret === "string" ? sha256(secret) : Buffer.from(secret);
    const credential = member !== null ? digest.toString("base64url") : secret === adminToken ? byToken : byPlace;
    const nonce = crypto.getRandomValues(Buffer.alloc(16)).toString("base64url");
    const text = [member ?? owner, credential, (now() + pageSignInLifetimeMs).toString(36), nonce].join(".");
    return `${text}.${this.#signature(text, credential)}`;
  }

  /** @throws ProxyError `unable` if other servers cannot be reached now. */
  end(id: string): Awaitable<void> {
    const claims = this.#read(id);
    if (claims) return this.#options.ended.add(digestOf(id), claims.until);
  }

  #hear(id: string, { member, credential }: Claims): Awaitable<void> {
    const { ended, keys } = this.#options;
    return whenKnown(ended.hear?.(digestOf(id)), () => {
      if (member !== null) return keys?.hearOf(credential);
    });
  }

  /** There is such a sign-in of a member, and the key that began it is not good any more. */
  lostKey(id: string): boolean {
    const claims = this.#read(id);
    return claims !== undefined && claims.member !== null && !this.#keyOf(claims);
  }

  #signInOf(id: string, claims: Claims): PageSignIn | undefined {
    const holds = () => this.#read(id) !== undefined && (claims.member === null || this.#keyOf(claims) !== undefined);
    if (!holds()) return undefined;
    const hear = () => this.#hear(id, claims);
    const keyName = claims.member === null ? undefined : this.#keyOf(claims)?.name;
    return {
      get holds() {
        // What is known now is at most as old as the last time that this was asked.
        void Promise.try(hear).catch(() => {});
        return holds();
      },
      hear,
      member: claims.member,
      ...(keyName && { keyName }),
    };
  }

  /** What the cookie says, if a server signed it, and it has not expired or ended. */
  #read(id: string): Claims | undefined {
    const [text, signature] = [id.slice(0, id.lastIndexOf(".")), id.slice(id.lastIndexOf(".") + 1)];
    const [member = "", credential = "", until] = text.split(".");
    if (until === undefined) return undefined;
    if (!includesSecret([signature], [this.#signature(text, credential)])) return undefined;
    const untilMs = Number.parseInt(until, 36);
    if (untilMs <= this.#options.now() || this.#options.ended.has(digestOf(id))) return undefined;
    return {
      member: member === owner ? null : member,
      credential: Buffer.from(credential, "base64url"),
      until: untilMs,
    };
  }

  /** They differ with the admin token where it was needed, and with the server where its machine was enough. */
  #signature(text: string, credential: string): string {
    const { secret, server, adminToken = "" } = this.#options;
    const proof = credential === byToken ? ` ${adminToken}` : credential === byPlace ? ` ${server}` : "";
    return new Bun.CryptoHasher("sha256", secret).update(text + proof).digest("base64url");
  }

  /** The key may have been revoked, or the member removed. */
  #keyOf({ member, credential }: Claims): ClientKey | undefined {
    const key = this.#options.keys?.keyWith(credential);
    return key && key.member === member && !isExpired(key, this.#options.now()) ? key : undefined;
  }
}

const digestOf = (id: string) => sha256(id).toString("hex");

/** The ended sign-ins of one process, which signs with a key of its own. */
export function memoryEndedPageSignIns(): EndedPageSignIns {
  const ended = new BoundedMap<string, true>(maxEnded);
  return { has: (digest) => ended.get(digest) === true, add: (digest) => void ended.set(digest, true) };
}

/** Sign-ins that are remembered as ended: only who is signed in can end one. */
const maxEnded = 100_000;
