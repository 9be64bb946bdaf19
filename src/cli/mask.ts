/** Text of a settings file as it may be shown: what looks like a secret is cut down to its last four characters. */

/** A name that ends as those of keys and tokens do, and its value; a count of tokens is none. */
const named = /((?:key|token|secret|password|passwd|authorization)["']?\s*[:=]\s*["']?(?:Bearer\s+)?)([^\s"',}]+)/gi;

/** @param secrets What is one wherever it stands. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  const known = secrets.reduce((shown, secret) => shown.replaceAll(secret, mask(secret)), text);
  return known.replace(named, (whole, name: string, value: string) =>
    /^(?:[\d.]+|true|false|null|unused|…\S*)$/.test(value) ? whole : name + mask(value),
  );
}

/** The last four characters, if it is long enough that they tell little. */
const mask = (secret: string) => `…${secret.length >= 16 ? secret.slice(-4) : ""}`;
