/** What a caller proves itself by, compared so that time tells nothing. */
import { createHash, timingSafeEqual } from "node:crypto";

/** What was sent in this header and as a bearer token: some clients send both, and one right one is enough. */
export function sentSecrets(headers: Headers, name: "x-api-key" | "x-admin-token"): string[] {
  const bearer = /^bearer +(.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  return [headers.get(name), bearer].flatMap((sent) => sent?.trim() || []);
}

/** Compares digests with every one of the secrets, so that time tells nothing of them or of which one matched. */
export function includesSecret(sent: readonly string[], secrets: readonly string[]): boolean {
  const digests = sent.map(sha256);
  let includes = false;
  for (const secret of secrets.map(sha256))
    for (const digest of digests) if (timingSafeEqual(digest, secret)) includes = true;
  return includes;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest();
