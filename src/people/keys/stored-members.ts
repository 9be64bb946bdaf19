/**
 * Members, their keys and invitations, in tables. What is known of a member is a second old at most when a request is let in, so a
 * revoked key is refused by every server within a second, and no server has to be told.
 */
import { keyName } from "../../config/key-schema";
import type { Awaitable } from "../../lib/awaitable";
import { BoundedMap } from "../../lib/bounded-map";
import { ProxyError } from "../../lib/errors";
import { dayMs, minuteMs } from "../../lib/format";
import { sha256 } from "../../lib/net/in/credentials";
import { asNumber, type Statement, sql, type Tables } from "../../lib/sql";
import { Turns } from "../../lib/turns";
import type { AccessTokens } from "./access-tokens";
import { type ClientKey, isMadeKey, keyNotFound, newClientKey } from "./client-keys";
import {
  acceptInvitation,
  addInvitation,
  addKey,
  changeLimits,
  findInvitation,
  folded,
  type MemberRow,
  memberColumns,
  memberOf,
  readModels,
  removeMember,
  requireMember,
  revokeKeys,
  withdrawOpen,
} from "./member-changes";
import type { ChangedLimits } from "./member-fields";
import type { Invitation, InvitationState, Member, Members, SentFrom, WantedKey } from "./members";

/** Milliseconds for which what was found out of a key counts: then it is asked for again. */
const rememberMs = 1_000;
/** Milliseconds for which it counts while the database does not answer. */
const rememberAwayMs = minuteMs;
/** Keys, wrong ones included, of which it is remembered what they are. */
const maxKeys = 20_000;

interface StoredKey {
  sha256: string;
  name: string;
  models: string[] | null;
  createdAt: number;
  expiresAt: number | null;
}

/** A member with the keys that are not revoked. */
interface Known {
  member: Member;
  keys: readonly StoredKey[];
}

interface KnownRow extends MemberRow {
  /** Null where the member has no key. */
  sha256: string | null;
  key_name: string;
  key_models: string | null;
  key_created_at_ms: number;
  key_expires_at_ms: number | null;
}

/** What else is kept of members: accounts, and sign-ins at GitHub. */
interface MembersElsewhere extends Pick<Members, "accountsOf"> {
  /** Removes the member's accounts, in the transaction that removes the member. */
  signOut(tables: Tables, member: string): Promise<unknown>;
  /** Ends the member's sign-ins at GitHub: whoever began one by a link or key that is not good any more would add an account. */
  cancelSignIns(tables: Tables, member: string): Promise<unknown>;
  /** Called after these changes are made. */
  changed?(): Promise<unknown>;
}

interface StoredMembersOptions extends MembersElsewhere {
  tables: Tables;
  /** Asks what a request waits for. */
  requests: Pick<Tables, "ask">;
  tokens: AccessTokens;
  /** Whether there ever was a member. Once true, it is not asked again. */
  wasUsed(): boolean;
  /** Whether there are tables to ask: a file is made with its first member. */
  hasTables(): boolean;
}

export class StoredMembers implements Members {
  readonly accountsOf: Members["accountsOf"];
  readonly #options: StoredMembersOptions;
  /** By their ids. */
  #known = new Map<string, Known>();
  /** The SHA-256 of a key → whose it is, and when that was asked. */
  readonly #owners = new BoundedMap<string, { member: string | null; at: number }>(maxKeys);
  readonly #asking = new Map<string, Promise<void>>();
  /** Whoever sends keys that nobody has must not take all connections. */
  readonly #strangers = new Turns(2);
  #allAt = Number.NEGATIVE_INFINITY;
  /** Why the members were never heard; null once they were. */
  #unheard: ProxyError | null | undefined;
  /** When something was changed here last: what was asked before does not count. */
  #changedAt = Number.NEGATIVE_INFINITY;
  #isUsed = false;

  constructor(options: StoredMembersOptions) {
    this.#options = options;
    this.accountsOf = options.accountsOf;
  }

  get needKeys(): boolean {
    this.#isUsed ||= this.#options.wasUsed();
    return this.#isUsed;
  }

  hear(sent: readonly string[], from?: SentFrom): Awaitable<void> {
    if (sent.length === 0 || !this.#options.hasTables()) return;
    const digests = sent.flatMap((text) => this.#digestOf(text) ?? []);
    const old = digests.filter((digest) => !this.#isFresh(digest, rememberMs));
    if (old.length === 0) return;
    // Beside a right key a wrong one is an old setting.
    const counted = this.findKey(sent) ? undefined : from;
    return Promise.all(old.map((digest) => this.#hearOnce(digest, counted))).then(() => {});
  }

  hearOf(digest: Uint8Array): Awaitable<void> {
    const hash = hexOf(digest);
    if (this.#options.hasTables() && !this.#isFresh(hash, rememberMs)) return this.#hearOnce(hash);
  }

  hearAll(): Awaitable<void> {
    if (!this.#options.hasTables() || this.#allAt > this.#oldest(rememberMs)) return;
    return this.#once("all", async () => {
      try {
        const [at, all] = [performance.now(), await this.#read(sql`1 = 1`, this.#options.tables)];
        this.#known = new Map(all.map((known) => [known.member.id, known]));
        this.#allAt = at;
        this.#unheard = null;
      } catch (thrown) {
        // The database does not answer: pages show what is known.
        if (!(thrown instanceof ProxyError)) throw thrown;
        if (this.#unheard !== null) this.#unheard = thrown;
      }
    });
  }

  requireHeard(): void {
    if (this.#unheard) throw this.#unheard;
  }

  list(): readonly Member[] {
    return this.#known
      .values()
      .map(({ member }) => member)
      .toArray()
      .sort((one, other) => one.name.localeCompare(other.name));
  }

  find(id: string): Member | undefined {
    return this.#known.get(id)?.member;
  }

  named(name: string): Member | undefined {
    return this.#known.values().find(({ member }) => folded(member.name) === folded(name))?.member;
  }

  keyCount(id: string): number {
    return this.#known.get(id)?.keys.length ?? 0;
  }

  clientKeysOf(id: string): ClientKey[] {
    const known = this.#known.get(id);
    return known ? known.keys.map((key) => this.#clientKeyOf(key, known.member)) : [];
  }

  findKey(sent: readonly string[]): ClientKey | undefined {
    // Found by its hash, so that timing reveals nothing of a key.
    for (const text of sent) {
      const token = this.#options.tokens.read(text);
      const key = this.keyWith(token?.digest ?? sha256(text));
      if (!key) continue;
      if (!token) return key;
      const expiresAt = Math.min(token.until, key.expiresAt ?? Number.POSITIVE_INFINITY);
      return { ...key, expiresAt, isShortLived: true };
    }
    return undefined;
  }

  keyWith(digest: Uint8Array): ClientKey | undefined {
    const { member: id = null } = this.#owners.get(hexOf(digest)) ?? {};
    const known = id === null ? undefined : this.#known.get(id);
    const key = known?.keys.find(({ sha256 }) => sha256 === hexOf(digest));
    return key && this.#clientKeyOf(key, known!.member);
  }

  async invite(given: string, limits: ChangedLimits = {}): Promise<Invitation> {
    const name = checkedName(given);
    const code = crypto.getRandomValues(Buffer.alloc(24)).toString("base64url");
    const { hadOpen: _, ...invited } = await this.#change(async (tables) => {
      const added = await addInvitation(tables, { name, limits, digest: digestOf(code) });
      if (added.hadOpen) await this.#options.cancelSignIns(tables, added.member.id);
      return [added.member.id, added];
    });
    this.#isUsed = true;
    return { ...invited, code };
  }

  invitationWith(code: string): Promise<InvitationState | undefined> {
    return this.#ifMade(() => findInvitation(this.#options.tables, digestOf(code)), undefined);
  }

  openInvitations(): Promise<{ member: string; expiresAt: number }[]> {
    const { tables } = this.#options;
    const open = sql`SELECT member, ${asNumber("expires_at_ms")} AS until FROM dragoman.invitations
      WHERE used_at_ms IS NULL AND expires_at_ms > ${tables.now} ORDER BY expires_at_ms`;
    return this.#ifMade(async () => {
      const rows = await tables.ask<{ member: string; until: number }>(open);
      return rows.map(({ member, until }) => ({ member, expiresAt: until }));
    }, []);
  }

  async withdrawInvitations(name: string): Promise<number> {
    return this.#change(async (tables) => {
      const { id } = await requireMember(tables, name);
      const count = await withdrawOpen(tables, id);
      if (count > 0) await this.#options.cancelSignIns(tables, id);
      return [id, count];
    });
  }

  async accept(code: string): Promise<{ member: Member; name: string; key: string } | undefined> {
    const key = newClientKey();
    return this.#change(async (tables) => {
      const accepted = await acceptInvitation(tables, digestOf(code), digestOf(key));
      if (!accepted) return [undefined, undefined];
      await this.#options.cancelSignIns(tables, accepted.member.id);
      return [accepted.member.id, { ...accepted, key }];
    });
  }

  setLimits(name: string, limits: ChangedLimits): Promise<Member> {
    return this.#change(async (tables) => {
      const member = await changeLimits(tables, name, limits);
      return [member.id, member];
    });
  }

  async createKey(id: string, wanted: WantedKey): Promise<string> {
    const key = newClientKey();
    return this.#change(async (tables) => {
      await addKey(tables, id, { ...wanted, digest: digestOf(key) });
      return [id, key];
    });
  }

  revokeKey(id: string, name: string): Promise<void> {
    return this.#change(async (tables) => {
      if ((await revokeKeys(tables, sql`member = ${id} AND folded = ${folded(name)}`)) === 0) throw keyNotFound(name);
      await this.#options.cancelSignIns(tables, id);
      return [id, undefined];
    });
  }

  remove(name: string): Promise<Member> {
    return this.#change(async (tables) => {
      const member = await removeMember(tables, name);
      await this.#options.cancelSignIns(tables, member.id);
      await this.#options.signOut(tables, member.id);
      return [member.id, member];
    });
  }

  /** A change is known here as soon as it is made. @param work Returns whose change it was, and its result. */
  async #change<T>(work: (tables: Tables) => Promise<[member: string | undefined, T]>): Promise<T> {
    const [member, result] = await this.#options.tables.transact(work);
    this.forget();
    // The change is made, and whoever made it is not told that it failed: without an answer now it is asked again in a second.
    if (member !== undefined) await this.#hearMember(member).catch(() => this.#known.delete(member));
    await this.#options.changed?.();
    return result;
  }

  /** What is known is asked for again, after a change of keys that was not made here. */
  forget(): void {
    this.#changedAt = performance.now();
  }

  #ifMade<T>(ask: () => Promise<T>, otherwise: T): Promise<T> {
    return this.#options.hasTables() ? ask() : Promise.resolve(otherwise);
  }

  /** Of the key that was sent, or that a token names; undefined for a text that is neither. */
  #digestOf(text: string): string | undefined {
    const token = this.#options.tokens.read(text);
    if (token) return token.until > Date.now() ? hexOf(token.digest) : undefined;
    return isMadeKey(text) ? digestOf(text) : undefined;
  }

  #isFresh(digest: string, ms: number): boolean {
    const known = this.#owners.get(digest);
    return known !== undefined && known.at > this.#oldest(ms);
  }

  /** An answer counts that was asked for after it. */
  #oldest(ms: number): number {
    return Math.max(performance.now() - ms, ms === rememberMs ? this.#changedAt : 0);
  }

  /** By one question, however many requests wait for it. @throws ProxyError `unable`, `rate_limit` */
  #hearOnce(digest: string, from?: SentFrom): Promise<void> {
    const which = sql`id IN (SELECT member FROM dragoman.keys WHERE sha256 = ${digest})`;
    const isKnown = this.#owners.get(digest)?.member != null;
    return this.#once(digest, async () => {
      if (!isKnown) from?.tries.refuse(from.network, digest);
      try {
        const at = performance.now();
        const [known] = await (isKnown ? this.#read(which) : this.#strangers.run(() => this.#read(which)));
        const isKey = known?.keys.some(({ sha256 }) => sha256 === digest);
        if (known) this.#known.set(known.member.id, known);
        this.#owners.set(digest, { member: isKey ? known!.member.id : null, at });
        if (!isKey) from?.tries.count(from.network, digest);
      } catch (thrown) {
        if (!(thrown instanceof ProxyError) || !this.#isFresh(digest, rememberAwayMs)) throw thrown;
      }
    });
  }

  async #hearMember(id: string): Promise<void> {
    const at = performance.now();
    const [known] = await this.#read(sql`id = ${id}`);
    if (!known) this.#known.delete(id);
    else this.#known.set(id, known);
    for (const { sha256 } of known?.keys ?? []) this.#owners.set(sha256, { member: id, at });
  }

  #once(what: string, work: () => Promise<void>): Promise<void> {
    const asked = this.#asking.get(what) ?? work().finally(() => this.#asking.delete(what));
    this.#asking.set(what, asked);
    return asked;
  }

  /** @param which A condition on the rows of `dragoman.members`. */
  async #read(which: Statement, asked: Pick<Tables, "ask"> = this.#options.requests): Promise<Known[]> {
    const rows = await asked.ask<KnownRow>(sql`SELECT ${memberColumns}, keys.sha256, keys.name AS key_name,
        keys.models AS key_models, ${asNumber("keys.created_at_ms")} AS key_created_at_ms,
        ${asNumber("keys.expires_at_ms")} AS key_expires_at_ms
      FROM dragoman.members LEFT JOIN dragoman.keys ON member = id AND revoked_at_ms IS NULL
      WHERE ${which} AND removed_at_ms IS NULL ORDER BY keys.created_at_ms`);
    this.#isUsed ||= rows.length > 0;
    return [...Map.groupBy(rows, ({ id }) => id).values()].map((own) => ({
      member: memberOf(own[0]!),
      keys: own.flatMap((row) => (row.sha256 === null ? [] : [keyOf(row, row.sha256)])),
    }));
  }

  #clientKeyOf(key: StoredKey, member: Member): ClientKey {
    const digest = Buffer.from(key.sha256, "hex");
    return {
      // The name of a key in the config has no slash.
      name: `${member.name}/${key.name}`,
      member: member.id,
      digest,
      models: key.models,
      memberModels: member.models,
      expiresAt: expiryOf(key, member),
      limited: key.models !== null || member.models !== null,
      isRevoked: () => this.keyWith(digest) === undefined,
      hear: () => this.hearOf(digest),
    };
  }
}

const hexOf = (digest: Uint8Array) => digest.toHex();
const digestOf = (secret: string) => hexOf(sha256(secret));

const keyOf = (row: KnownRow, sha256: string): StoredKey => ({
  sha256,
  name: row.key_name,
  models: readModels(row.key_models),
  createdAt: row.key_created_at_ms,
  expiresAt: row.key_expires_at_ms,
});

function expiryOf({ createdAt, expiresAt }: StoredKey, { key_days }: Member): number | null {
  if (key_days === null) return expiresAt;
  return Math.min(expiresAt ?? Number.POSITIVE_INFINITY, createdAt + key_days * dayMs);
}

/** The rule for names of keys, of which a member's name is a part. @throws ProxyError `invalid_request` */
function checkedName(name: string): string {
  const read = keyName.safeParse(name);
  if (read.success) return read.data;
  throw new ProxyError("invalid_request", `The member's name ${read.error.issues[0]?.message}.`, { param: "name" });
}
