/** Text of a settings file as it may be shown: what looks like a secret is cut down to its last four characters. */
import { maskSecret } from "../../config/secrets";
import { hideShapes } from "../../logger";

/** A name that ends as those of keys and tokens do, and its value, in quotes or up to a space; a count of tokens is none. */
const named =
  /((?:key|token|secret|passw(?:or)?d|passphrase|_pat|credentials?|cookie|authorization)["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|(?:(?:bearer|basic)\s+)?[^\s"',}]+)/gi;

/** Quotes and the kind of sign-in stay. */
const value = /^(["']?)((?:bearer|basic)\s+)?(.*?)(\1)$/is;

/** @param secrets What is one wherever it stands. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  const known = secrets
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
    .reduce((shown, secret) => shown.replaceAll(secret, maskSecret(secret)), text);
  const masked = known.replace(named, (_, name: string, told: string) => {
    const [, quote = "", kind = "", secret = "", end = ""] = value.exec(told)!;
    const plain = /^(?:[\d.]*|true|false|null|unused|…\S*)$/.test(secret);
    return name + quote + kind + (plain ? secret : maskSecret(secret)) + end;
  });
  return hideShapes(masked);
}
