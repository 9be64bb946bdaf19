/**
 * Texts that clients send back and do not look into, such as `encrypted_content`. dragoman's own hold the words
 * themselves, because nothing is stored here.
 */
const sealMark = "dragoman.";

/** @param kind What the text is, if there are several. */
export const seal = (text: string, kind = ""): string => sealMark + kind + Buffer.from(text).toString("base64url");

/** Whether it was sealed here: no upstream can read it. */
export const isSealed = (text: unknown, kind = ""): text is string =>
  typeof text === "string" && text.startsWith(sealMark + kind);

/** Undefined for a text that another service has sealed, or that is of another kind. */
export function unseal(text: unknown, kind = ""): string | undefined {
  if (!isSealed(text, kind)) return undefined;
  return Buffer.from(text.slice(sealMark.length + kind.length), "base64url").toString() || undefined;
}
