/**
 * Seals secrets where others may read them, in a database or in copies of a folder: AES-256-GCM, with what a secret belongs to as associated data, so that
 * a sealed text opens nowhere else. The key is never stored; each sealed text names the key that made it.
 */
import { ProxyError } from "./errors";
import { lazy } from "./lazy";

/** It takes long to load, and most starts have nothing sealed. */
const node = lazy(() => process.getBuiltinModule("node:crypto"));

/** Bytes of a sealed text: version, key id, nonce, ciphertext, tag. */
const [idBytes, nonceBytes, tagBytes] = [8, 12, 16];
const version = 1;
const derivedBytes = 32;
const headBytes = 1 + idBytes + nonceBytes;

export class Seals {
  /** The id of the key. */
  readonly keyId: string;
  readonly #key: Uint8Array;

  /** @param key 32 bytes. */
  constructor(key: Uint8Array) {
    this.keyId = keyIdOf(key);
    this.#key = key;
  }

  /** @param keyId Of the key that something is sealed with. @throws ProxyError if it is another one. */
  require(keyId: string): void {
    if (keyId === this.keyId) return;
    throw new ProxyError(
      "internal",
      `The secrets are sealed with the key ${keyId}, which is not here. Set DRAGOMAN_SEAL_KEY to that key, or restore the file seal.key.`,
      { code: "seal_key_missing" },
    );
  }

  /** A secret that every process with the same key has. @param purpose Each has a secret of its own. */
  derived(purpose: string): Buffer {
    return Buffer.from(node().hkdfSync("sha256", this.#key, "", `dragoman ${purpose}`, derivedBytes));
  }

  /** @param about What the text belongs to, such as `account github.com/octo`. */
  seal(text: string, about: string): Buffer {
    const nonce = crypto.getRandomValues(Buffer.alloc(nonceBytes));
    const head = Buffer.concat([Buffer.of(version), Buffer.from(this.keyId, "hex"), nonce]);
    const cipher = node()
      .createCipheriv("aes-256-gcm", this.#key, nonce)
      .setAAD(Buffer.concat([head, Buffer.from(about)]));
    return Buffer.concat([head, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
  }

  /** @throws ProxyError if the key is missing, or the text was changed or belongs to something else. */
  open(sealed: Uint8Array, about: string): string {
    const bytes = Buffer.from(sealed);
    if (bytes.length < headBytes + tagBytes || bytes[0] !== version) throw damaged(about);
    const [head, tag] = [bytes.subarray(0, headBytes), bytes.subarray(-tagBytes)];
    this.require(keyIdIn(bytes));
    const decipher = node()
      .createDecipheriv("aes-256-gcm", this.#key, head.subarray(-nonceBytes), { authTagLength: tagBytes })
      .setAAD(Buffer.concat([head, Buffer.from(about)]))
      .setAuthTag(tag);
    try {
      return decipher.update(bytes.subarray(headBytes, -tagBytes), undefined, "utf8") + decipher.final("utf8");
    } catch {
      throw damaged(about);
    }
  }
}

/** The id of the key that sealed a text. */
export const keyIdIn = (sealed: Uint8Array): string => Buffer.from(sealed.subarray(1, 1 + idBytes)).toString("hex");

/** Names a key without revealing it. */
export const keyIdOf = (key: Uint8Array): string =>
  new Bun.CryptoHasher("sha256")
    .update("dragoman seal key\0")
    .update(key)
    .digest("hex")
    .slice(0, idBytes * 2);

const damaged = (about: string) =>
  new ProxyError(
    "internal",
    `The sealed value of ${about} was changed where it is stored, and cannot be opened. Restore it from a backup, or set it anew.`,
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
export const aboutCopilotToken = (account: string) => `copilot token of ${account}`;
/** The secret of access tokens before the key was changed. */
export const aboutTokenSecret = "token secret";
