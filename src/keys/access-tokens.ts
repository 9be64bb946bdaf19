/**
 * Short-lived keys of a sign-in from a tool. A token names the stored key that it stands for, and is signed by a secret that all
 * servers have: nobody asks a database about it, and it ends with its key.
 */
import { createHmac } from "node:crypto";
import { includesSecret } from "../net/in/credentials";

export interface AccessTokens {
  /** @param digest The SHA-256 of the key. @param until Timestamp, ms. */
  make(digest: Uint8Array, until: number): string;
  /** The key that a token stands for, and until when; undefined if no server made it. */
  read(token: string): { digest: Buffer; until: number } | undefined;
}

const form = /^drs_([\w-]{43})\.([0-9a-z]{1,11})\.([\w-]{43})$/;

/** @param secrets The first one signs; each of them is accepted. Read at each use. */
export function openAccessTokens(secrets: () => readonly Uint8Array[]): AccessTokens {
  const sign = (secret: Uint8Array, text: string) => createHmac("sha256", secret).update(text).digest("base64url");
  return {
    make(digest, until) {
      const text = `${Buffer.from(digest).toString("base64url")}.${until.toString(36)}`;
      return `drs_${text}.${sign(secrets()[0]!, text)}`;
    },
    read(token) {
      const [, digest, until, signature] = form.exec(token) ?? [];
      if (signature === undefined) return undefined;
      const signatures = secrets().map((secret) => sign(secret, `${digest}.${until}`));
      if (!includesSecret([signature], signatures)) return undefined;
      return { digest: Buffer.from(digest!, "base64url"), until: Number.parseInt(until!, 36) };
    },
  };
}
