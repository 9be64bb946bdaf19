/** The members of a team and their keys. A member's key spends only the accounts that this member signed in. */
import type { Awaitable } from "../../lib/awaitable";
import { ProxyError } from "../../lib/errors";
import type { SecretTries } from "../../lib/net/in/failed-tries";
import type { ClientKey } from "./client-keys";
import type { ChangedLimits, MemberLimits } from "./member-fields";

export interface Member extends MemberLimits {
  id: string;
  name: string;
  /** Timestamp in milliseconds. */
  createdAt: number;
}

/** What a member makes a key from. */
export interface WantedKey {
  name: string;
  /** Patterns of models, within those of the member; null for all of these. */
  models: readonly string[] | null;
  /** Timestamp in milliseconds; null for as late as the member's limits allow. */
  expiresAt: number | null;
  /** SHA-256 of the key that the member asks with: the new one may do no more. */
  by: Uint8Array;
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

/** What became of an invitation. Times are timestamps in milliseconds. */
export interface InvitationState {
  member: Member;
  name: "open" | "used" | "expired" | "withdrawn";
  /** When it was used or withdrawn; until when it can be used, or could be. */
  at: number;
}

/** An account, as the servers last found it. */
export interface MemberAccount {
  account_key: string;
  /** A name of `accountStates`; null where only a server knows it. */
  state: string | null;
}

/** Where keys were sent from: each that nobody has is a question to the database, and is counted. */
export interface SentFrom {
  network: string;
  tries: SecretTries;
}

/** Keys that a member may have at a time, expired ones included. */
export const maxMemberKeys = 20;
/** Keys that may be made for a member within a day: a revoked one keeps its row. */
export const maxDailyKeys = 100;
export const memberNotFound = (name: string): ProxyError =>
  new ProxyError(
    "not_found",
    `There is no member ${name.slice(0, 63)}; the page Members and \`dragoman member ls\` show those that there are.`,
    { code: "member_not_found" },
  );

/** Names that keys of invitations get. */
export const invitedKeyName = /^key-\d+$/i;

export interface Members {
  // What follows up to `keyWith` tells what was heard last. To be called before, where a request begins:
  /**
   * Makes what is known of the keys that were sent, and of their members, a second old at most.
   * @param from Missing where keys may be sent without end.
   * @throws ProxyError `unable`; `rate_limit` where too many were sent that nobody has
   */
  hear(sent: readonly string[], from?: SentFrom): Awaitable<void>;
  /** The same of the key with this SHA-256. */
  hearOf(digest: Uint8Array): Awaitable<void>;
  /** The same of all members, if the database answers. */
  hearAll(): Awaitable<void>;
  /** For a list of them: nobody is known where none was ever heard. @throws ProxyError `unable` */
  requireHeard(): void;
  /** All of them, by name. */
  list(): readonly Member[];
  find(id: string): Member | undefined;
  /** The member of this name, in upper or lower case. */
  named(name: string): Member | undefined;
  /** How many keys a member has, expired ones included. */
  keyCount(id: string): number;
  /** The keys of a member, as requests have them. */
  clientKeysOf(id: string): ClientKey[];
  /** The key that one of the sent values is. Its name begins with the member's: `anna/laptop`. */
  findKey(sent: readonly string[]): ClientKey | undefined;
  /** The key with this SHA-256. */
  keyWith(digest: Uint8Array): ClientKey | undefined;
  /** Once somebody was a member, every client needs a key: removing the last member must not open the server to everyone. */
  readonly needKeys: boolean;
  /**
   * Invites a new member, or gives a member another link. An earlier link that was not used is withdrawn.
   * @param limits Those that are missing stay as they are; a new member has none.
   * @throws ProxyError if the name cannot be used
   */
  invite(name: string, limits?: ChangedLimits): Promise<Invitation>;
  /** The invitation with this code; undefined if there never was one, or if its member was removed. */
  invitationWith(code: string): Promise<InvitationState | undefined>;
  /** Invitations that can be used now: the member's id, and until when. */
  openInvitations(): Promise<{ member: string; expiresAt: number }[]>;
  /** The accounts that each of these members has signed in; who has none is missing. */
  accountsOf(ids: readonly string[]): Promise<Map<string, MemberAccount[]>>;
  /** Takes back the member's open invitations. @returns How many. @throws ProxyError `not_found` */
  withdrawInvitations(name: string): Promise<number>;
  /**
   * Uses the invitation up and creates a key.
   * @returns The key, which cannot be shown again; undefined if the invitation is not open.
   * @throws ProxyError `conflict` if the member has too many keys
   */
  accept(code: string): Promise<{ member: Member; name: string; key: string } | undefined>;
  /** Changes the limits of a member; those that are missing stay as they are. @throws ProxyError `not_found`, `conflict` */
  setLimits(name: string, limits: ChangedLimits): Promise<Member>;
  /**
   * Creates a key of the member.
   * @returns The key, which cannot be shown again.
   * @throws ProxyError `conflict` if the name is taken or the member has too many keys; `invalid_request` if the limits do not allow it;
   *   `authentication` if the key that asks is gone
   */
  createKey(id: string, wanted: WantedKey): Promise<string>;
  /** Revokes a key of the member. @throws ProxyError `not_found` */
  revokeKey(id: string, name: string): Promise<void>;
  /** Removes the member, and with them their keys, accounts and invitations. @throws ProxyError `not_found` */
  remove(name: string): Promise<Member>;
}
