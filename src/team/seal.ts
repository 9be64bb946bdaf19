/**
 * Seals secrets for a database that others can read: AES-256-GCM, with what a secret belongs to as associated data, so that
 * a sealed text opens nowhere else. The key is never stored; each sealed text names the key that made it.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import { ProxyError } from "../errors";

/** Bytes of a sealed text: version, key id, nonce, ciphertext, tag. */
const [idBytes, nonceBytes, tagBytes] = [8, 12, 16];
const version = 1;
const derivedBytes = 32;
const headBytes = 1 + idBytes + nonceBytes;

export class Seals {
  readonly #byId: ReadonlyMap<string, Uint8Array>;
  #current: string;

  /** @param keys 32 bytes each; the first one seals. */
  constructor(keys: readonly Uint8Array[]) {
    this.#byId = new Map(keys.map((key) => [keyIdOf(key), key]));
    this.#current = this.keyIds[0]!;
  }

  /** The id of the key that seals. */
  get keyId(): string {
    return this.#current;
  }

  /** The ids of all keys that this process has. */
  get keyIds(): readonly string[] {
    return [...this.#byId.keys()];
  }

  /** Seals with this key from now on. @throws ProxyError if this process does not have it. */
  use(keyId: string): void {
    this.#keyOf(keyId);
    this.#current = keyId;
  }

  /**
   * Secrets that every process with the same keys has: of the key that seals first, then of the others.
   * @param purpose Each has secrets of its own.
   */
  derived(purpose: string): Buffer[] {
    const others = this.keyIds.filter((id) => id !== this.#current);
    return [this.#current, ...others].map((id) =>
      Buffer.from(hkdfSync("sha256", this.#keyOf(id), "", `dragoman ${purpose}`, derivedBytes)),
    );
  }

  /** @param about What the text belongs to, such as `account github.com/octo`. */
  seal(text: string, about: string): Buffer {
    const nonce = randomBytes(nonceBytes);
    const head = Buffer.concat([Buffer.of(version), Buffer.from(this.#current, "hex"), nonce]);
    const cipher = createCipheriv("aes-256-gcm", this.#keyOf(this.#current), nonce).setAAD(
      Buffer.concat([head, Buffer.from(about)]),
    );
    return Buffer.concat([head, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
  }

  /** @throws ProxyError if the key is missing, or the text was changed or belongs to something else. */
  open(sealed: Uint8Array, about: string): string {
    const bytes = Buffer.from(sealed);
    if (bytes.length < headBytes + tagBytes || bytes[0] !== version) throw damaged(about);
    const [head, tag] = [bytes.subarray(0, headBytes), bytes.subarray(-tagBytes)];
    const key = this.#keyOf(keyIdIn(bytes));
    const decipher = createDecipheriv("aes-256-gcm", key, head.subarray(-nonceBytes), { authTagLength: tagBytes })
      .setAAD(Buffer.concat([head, Buffer.from(about)]))
      .setAuthTag(tag);
    try {
      return decipher.update(bytes.subarray(headBytes, -tagBytes), undefined, "utf8") + decipher.final("utf8");
    } catch {
      throw damaged(about);
    }
  }

  #keyOf(id: string): Uint8Array {
    const key = this.#byId.get(id);
    if (key) return key;
    throw new ProxyError(
      "internal",
      `The database is sealed with the key ${id}, which is not set here. Set DRAGOMAN_SEAL_KEY, or during a rotation DRAGOMAN_SEAL_KEY_NEXT, to that key.`,
      { code: "seal_key_missing" },
    );
  }
}

/** The id of the key that sealed a text. */
export const keyIdIn = (sealed: Uint8Array): string => Buffer.from(sealed.subarray(1, 1 + idBytes)).toString("hex");

/** Names a key without revealing it. */
export const keyIdOf = (key: Uint8Array): string =>
  createHash("sha256")
    .update("dragoman seal key\0")
    .update(key)
    .digest("hex")
    .slice(0, idBytes * 2);

const damaged = (about: string) =>
  new ProxyError(
    "internal",
    `The sealed value of ${about} was changed in the database, and cannot be opened. Restore it from a backup, or set it anew.`,
    {
      code: "seal_broken",
    },
  );

// What each sealed value belongs to, so that none opens in the place of another.
export const aboutConfig = "config";
/** @param account Its key. */
export const aboutToken = (account: string) => `github token of ${account}`;
/** @param sha256 Of its id, in hexadecimal. */
export const aboutSignIn = (sha256: string) => `sign-in ${sha256}`;
export const aboutSession = (account: string) => `copilot token of ${account}`;
