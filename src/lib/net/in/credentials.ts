/** Reads and compares the secrets that callers send. */

/** The headers of a client key, besides the bearer token: Anthropic's and Google's. */
export const keyHeaders = ["x-api-key", "x-goog-api-key"] as const;

/** The values of these headers and of the bearer token. Some clients send several; one valid value is enough. */
export function sentSecrets(headers: Headers, names: readonly string[]): string[] {
  const sent: string[] = [];
  for (const name of names) addTo(sent, headers.get(name));
  addTo(sent, /^bearer +(\S.*)$/i.exec(headers.get("authorization") ?? "")?.[1]);
  return sent;
}

function addTo(sent: string[], value: string | null | undefined): void {
  const secret = value?.trim();
  if (secret) sent.push(secret);
}

/** Whether one of the sent values is a secret. Takes constant time, so that it reveals neither the secrets nor which one matched. */
export function includesSecret(sent: readonly string[], secrets: readonly string[]): boolean {
  const digests = sent.map(sha256);
  let includes = false;
  for (const secret of secrets.map(sha256))
    for (const digest of digests) if (crypto.timingSafeEqual(digest, secret)) includes = true;
  return includes;
}

/** Of a secret, for comparing and storing it. */
export const sha256 = (text: string): Buffer => new Bun.CryptoHasher("sha256").update(text).digest();
