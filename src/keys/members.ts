/** The members of a team and their keys. A member's key spends only the accounts that this member signed in. */
import type { ClientKey } from "./client-keys";

export interface Member {
  id: string;
  name: string;
  /** Timestamp in milliseconds. */
  createdAt: number;
}

export interface MemberKey {
  /** Differs from the names of the member's other keys. */
  name: string;
  /** Timestamp in milliseconds. */
  createdAt: number;
}

export interface Invitation {
  member: Member;
  /** What the link ends with. Only its hash is kept. */
  code: string;
  /** Timestamp in milliseconds. */
  expiresAt: number;
  /** The member existed before: the link gives another key. */
  isKnown: boolean;
}

export interface Members {
  /** By name. */
  list(): Member[];
  find(id: string): Member | undefined;
  keysOf(id: string): MemberKey[];
  /** The same keys, as requests have them. */
  clientKeysOf(id: string): ClientKey[];
  /** The key that one of the sent values is. Its name begins with the member's: `anna/laptop`. */
  findKey(sent: readonly string[]): ClientKey | undefined;
  /** The key with this SHA-256. */
  keyWith(digest: Uint8Array): ClientKey | undefined;
  /** Calls back after members or keys were changed, by whichever server. */
  follow(changed: () => void): void;
  /** Once somebody was a member, every client needs a key: removing the last member must not open the server to everyone. */
  readonly needKeys: boolean;
  /** Invites a new member, or gives a member another link. @throws ProxyError if the name cannot be used */
  invite(name: string): Promise<Invitation>;
  /** Who is invited by the code; undefined if it is unknown, used or expired. */
  invitedBy(code: string): Promise<Member | undefined>;
  /**
   * Uses the invitation up and creates a key.
   * @returns The key, which cannot be shown again; undefined if the code is unknown, used or expired.
   */
  accept(code: string): Promise<{ member: Member; name: string; key: string } | undefined>;
  /** Revokes a key of the member. @throws ProxyError `not_found` */
  revokeKey(id: string, name: string): Promise<void>;
  /** Removes the member, and with them their keys, accounts and invitations. @throws ProxyError `not_found` */
  remove(name: string): Promise<Member>;
}
