/**
 * Short-lived keys of a sign-in from a tool. A token names the stored key that it stands for, and is signed by a secret that all
 * servers have: nobody asks a database about it, and it ends with its key.
 */
import { includesSecret } from "../../lib/net/in/credentials";

const form = /^drs_([\w-]{43})\.([0-9a-z]{1,11})\.([\w-]{43})$/;

/** Whether a text has the form of a token, whoever made it. */
export const isAccessToken = (text: string): boolean => form.test(text);

const sign = (secret: Uint8Array, text: string) =>
  new Bun.CryptoHasher("sha256", secret).update(text).digest("base64url");

export class AccessTokens {
  readonly #secrets: () => readonly Uint8Array[];

  /** @param secrets The first one signs; each of them is accepted. Read at each use. */
  constructor(secrets: () => readonly Uint8Array[]) {
    this.#secrets = secrets;
  }

  /** @param digest The SHA-256 of the key. @param until Timestamp, ms. */
  make(digest: Uint8Array, until: number): string {
    const text = `${Buffer.from(digest).toString("base64url")}.${until.toString(36)}`;
    return `drs_${text}.${sign(this.#secrets()[0]!, text)}`;
  }

  /** The key that a token stands for, and until when; undefined if no server made it. */
  read(token: string): { digest: Buffer; until: number } | undefined {
    const [, digest, until, signature] = form.exec(token) ?? [];
    if (signature === undefined) return undefined;
    const signatures = this.#secrets().map((secret) => sign(secret, `${digest}.${until}`));
    if (!includesSecret([signature], signatures)) return undefined;
    return { digest: Buffer.from(digest!, "base64url"), until: Number.parseInt(until!, 36) };
  }
}
