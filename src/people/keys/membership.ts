/** What a member's requests may know of the member and change: the member's own keys, and nobody else's. */
import type { Awaitable } from "../../lib/awaitable";
import type { FailedTries } from "../../lib/net/in/failed-tries";
import { type ClientKey, keyNotFound } from "./client-keys";
import { type Logins, readUserCode, type WaitingLogin } from "./logins";
import type { Member, Members, WantedKey } from "./members";

export class Membership {
  readonly #members: Members;
  readonly #logins: Logins | undefined;
  readonly #tries: FailedTries;

  /** @param tries Counts the wrong codes of the member. */
  constructor(
    members: Members,
    /** The member's id. */
    readonly id: string,
    logins: Logins | undefined,
    tries: FailedTries,
  ) {
    this.#members = members;
    this.#logins = logins;
    this.#tries = tries;
  }

  /**
   * The sign-in of a tool that waits for somebody with this code; undefined if there is none.
   * @param code As a person typed it: wrong ones are counted, so that none can be guessed.
   * @throws ProxyError `rate_limit`
   */
  async waitingLogin(code: string): Promise<{ code: string; login: WaitingLogin } | undefined> {
    this.#tries.refuse(this.id);
    const read = readUserCode(code);
    const login = read && (await this.#logins?.waiting(read));
    if (login) return { code: read, login };
    this.#tries.count(this.id);
    return undefined;
  }

  /**
   * Confirms the sign-in of a tool, or denies it.
   * @param by The SHA-256 of the member's key: the tool may do no more than it. Undefined to deny.
   * @returns False if no such sign-in waits any more.
   */
  async decideLogin(code: string, by: Uint8Array | undefined): Promise<boolean> {
    return (await this.#logins?.decide(code, by && { member: this.id, key: by })) ?? false;
  }

  /** Undefined once the member was removed. */
  get self(): Member | undefined {
    return this.#members.find(this.id);
  }

  clientKeys(): ClientKey[] {
    return this.#members.clientKeysOf(this.id);
  }

  /** As `Members.hear`. */
  hear(sent: readonly string[]): Awaitable<void> {
    return this.#members.hear(sent);
  }

  /** The member's key that one of the sent values is. */
  findKey(sent: readonly string[]): ClientKey | undefined {
    const key = this.#members.findKey(sent);
    return key?.member === this.id ? key : undefined;
  }

  /** @returns The key, which cannot be shown again, and its whole name. @throws as `Members.createKey` */
  async createKey(wanted: WantedKey): Promise<{ name: string; key: string }> {
    const key = await this.#members.createKey(this.id, wanted);
    return { name: `${this.self!.name}/${wanted.name}`, key };
  }

  /** @param name `anna/laptop`, or `laptop`. @returns Its whole name. @throws ProxyError `not_found` */
  async revokeKey(name: string): Promise<string> {
    const names = [name, `${this.self?.name}/${name}`].map((each) => each.toLowerCase());
    const own = this.clientKeys().find((key) => names.includes(key.name!.toLowerCase()));
    if (!own) throw keyNotFound(name);
    await this.#members.revokeKey(this.id, name.slice(name.indexOf("/") + 1));
    return own.name!;
  }
}
