/** Masks the secrets in the text of a settings file: only their last four characters are shown. */
import { maskSecret } from "../../config/secrets";
import { hideShapes } from "../../lib/logger";

/** A name that ends like those of keys and tokens, and its value, in quotes or up to a space. A name such as `max_tokens` does not match. */
const named =
  /((?:key|token|secret|passw(?:or)?d|passphrase|_pat|credentials?|cookie|authorization)["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|(?:(?:bearer|basic)\s+)?[^\s"',}]+)/gi;

/** The parts of a value: quotes and the scheme (`Bearer`) are kept. */
const value = /^(["']?)((?:bearer|basic)\s+)?(.*?)(\1)$/is;

/** @param secrets Values that are masked wherever they occur. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  const known = secrets
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
    .reduce((shown, secret) => shown.replaceAll(secret, maskSecret(secret)), text);
  const masked = known.replace(named, (_, name: string, given: string, at: number) => {
    const [, quote = "", kind = "", secret = "", end = ""] = value.exec(given)!;
    // `envKey` names the variable that has the key.
    const isVariable = /(?:^|\W)env_?$/i.test(known.slice(Math.max(0, at - 5), at)) && /^[A-Z][A-Z\d_]*$/.test(secret);
    const plain = isVariable || /^(?:[\d.]*|true|false|null|unused|…\S*)$/.test(secret);
    return name + quote + kind + (plain ? secret : maskSecret(secret)) + end;
  });
  return hideShapes(masked);
}
