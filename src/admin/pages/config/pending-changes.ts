/**
 * Config changes that wait for confirmation. The page that asks for it has the submitted form, sealed: the browser can neither
 * read the secrets in it nor change it, and any server of a team with the same key opens it. A change is saved once, since the
 * config has another revision afterwards.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Stored } from "../../../config/patch";
import { isObject, parseJson } from "../../../lib/json";

interface PendingChange {
  patch: Stored;
  /** Revision of the config that the change was made for. */
  revision: string;
  /** The submitted form. */
  form: URLSearchParams;
}

interface Sealed extends Omit<PendingChange, "form"> {
  form: string;
  /** Unix ms. */
  until: number;
}

/** Milliseconds. */
const pendingChangeMs = 30 * 60_000;
const [algorithm, nonceBytes, tagBytes] = ["aes-256-gcm", 12, 16] as const;

export class PendingChanges {
  readonly #key: Uint8Array;
  readonly #now: () => number;

  /** @param key Of 32 bytes. @param now Wall clock, ms. */
  constructor(key: Uint8Array, now: () => number) {
    this.#key = key;
    this.#now = now;
  }

  seal({ form, ...change }: PendingChange): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv(algorithm, this.#key, nonce);
    const text = JSON.stringify({ ...change, form: form.toString(), until: this.#now() + pendingChangeMs });
    return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString(
      "base64url",
    );
  }

  /** Returns undefined if it was not sealed here, was changed, or has waited for more than half an hour. */
  open(sealed: string | null): PendingChange | undefined {
    const bytes = Buffer.from(sealed ?? "", "base64url");
    if (bytes.length < nonceBytes + tagBytes) return undefined;
    const change = parseJson(opened(bytes, this.#key));
    if (!isObject(change)) return undefined;
    const { patch, revision, form, until } = change as unknown as Sealed;
    return until > this.#now() ? { patch, revision, form: new URLSearchParams(form) } : undefined;
  }
}

function opened(bytes: Buffer, key: Uint8Array): string {
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  try {
    return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8") + decipher.final("utf8");
  } catch {
    return ""; // another key sealed it
  }
}
