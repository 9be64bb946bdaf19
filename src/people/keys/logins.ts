/**
 * Sign-ins from tools by the device flow (RFC 8628): a tool shows a code, a member confirms it on a page, and the tool gets a
 * short-lived key that it renews. What it may do is what the key with which the member opened the page may do.
 */

/** A sign-in that waits for a member. */
export interface WaitingLogin {
  /** The name that the tool gave itself. */
  tool: string;
  /** The network that it was begun from. */
  network: string | null;
  /** Timestamps, ms. */
  beganAt: number;
  expiresAt: number;
}

export interface BegunLogin {
  /** For the tool, which nobody else gets to know. */
  deviceCode: string;
  /** For the person: `BCDF-GHJK`. */
  userCode: string;
  /** Seconds. */
  expiresIn: number;
  interval: number;
}

export interface LoginTokens {
  accessToken: string;
  refreshToken: string;
  /** Seconds until the access token expires. */
  expiresIn: number;
  /** The member's name. */
  member: string;
}

/** Why a poll gives no tokens, in the words of RFC 8628, section 3.5. */
export type LoginRefusal = "authorization_pending" | "slow_down" | "access_denied" | "expired_token" | "invalid_grant";

export interface Logins {
  /** @throws ProxyError `rate_limit` if too many wait, or came from this network. */
  begin(tool: string, network: string | null): Promise<BegunLogin>;
  /** The sign-in with this code, if it waits. */
  waiting(userCode: string): Promise<WaitingLogin | undefined>;
  /**
   * Ends the wait.
   * @param approved By which member and key; undefined if the member denied it.
   * @returns False if no such sign-in waits.
   */
  decide(userCode: string, approved: { member: string; key: Uint8Array } | undefined): Promise<boolean>;
  /** @returns The tokens once, after the member confirmed it. */
  poll(deviceCode: string): Promise<LoginTokens | LoginRefusal>;
  /** Other tokens for a refresh token, which is used up; undefined if it is not good, or its key or member is gone. */
  refresh(refreshToken: string): Promise<LoginTokens | undefined>;
  /** Revokes the key of an access or a refresh token, if there is one. */
  end(token: string): Promise<void>;
}

/** Seconds; and days after which a sign-in that nobody renews is over. */
export const loginTimes = { code: 600, interval: 5, access: 3_600, unusedDays: 30 } as const;

/** No vowels, so that no words come about (RFC 8628, section 6.1). */
const letters = "BCDFGHJKLMNPQRSTVWXZ";

export function newUserCode(): string {
  // Bytes from 240 on would make some letters likelier than others.
  const picked = [...crypto.getRandomValues(new Uint8Array(64))].filter((byte) => byte < 240);
  const pick = (_: unknown, at: number) => letters[picked[at]! % letters.length];
  return Array.from({ length: 8 }, pick).join("").replace(/.{4}/, "$&-");
}

/** A code as a person typed it; undefined if it can be none. */
export function readUserCode(text: string): string | undefined {
  const typed = text.toUpperCase().replace(/[^A-Z]/g, "");
  return new RegExp(`^[${letters}]{8}$`).test(typed) ? `${typed.slice(0, 4)}-${typed.slice(4)}` : undefined;
}

export const newToken = (prefix: string): string =>
  `${prefix}_${crypto.getRandomValues(Buffer.alloc(32)).toString("base64url")}`;

/** A name that a key may have, of what the tool calls itself. */
export function toolName(surface: string | null): string {
  const name = (surface ?? "")
    .replaceAll("_", "-")
    .replace(/[^\p{L}\p{N} ._@+-]/gu, "")
    .replace(/^[^\p{L}\p{N}]+/u, "")
    .slice(0, 50)
    .trim();
  return name || "tool";
}
