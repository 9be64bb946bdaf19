/**
 * Texts that clients send back and do not look into, such as `encrypted_content`. dragoman's own hold the words
 * themselves, because nothing is stored here.
 */
const sealMark = "dragoman.";

export const seal = (text: string): string => sealMark + Buffer.from(text).toString("base64url");

/** Whether it was sealed here: no upstream can read it. */
export const isSealed = (text: unknown): text is string => typeof text === "string" && text.startsWith(sealMark);

/** Undefined for a text that another service has sealed. */
export function unseal(text: unknown): string | undefined {
  if (!isSealed(text)) return undefined;
  return Buffer.from(text.slice(sealMark.length), "base64url").toString() || undefined;
}
