/** What OpenAI's two dialects, chat and responses, spell alike. */
import { kinds, type ProxyError } from "../errors";
import type { JsonObject, Turn, WithExtras } from "./hub/conversation";

/** Who speaks, by the word of the wire. */
export const roles: Record<string, Turn["role"]> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
};

/** What only this family has words for; nothing at all where there is nothing. */
export function extrasOf(members: JsonObject | undefined): WithExtras {
  return members && Object.keys(members).length > 0 ? { extras: { openai: members } } : {};
}

/** What the client calls its session. */
export const sessionOf = ({ prompt_cache_key }: JsonObject): unknown => prompt_cache_key;

/** Data within an address. */
interface Data {
  mediaType: string;
  base64: string;
}

/** `data:<media type>;base64,<data>`, without a copy of the data; undefined for any other address. */
export function dataOf(url: string): Data | undefined {
  const end = url.startsWith("data:") ? url.slice(0, 300).indexOf(";base64,") : -1;
  if (end === -1) return undefined;
  return { mediaType: url.slice("data:".length, end), base64: url.slice(end + ";base64,".length) };
}

/** The address that holds the data. */
export const dataUrl = ({ mediaType, base64 }: Data): string => `data:${mediaType};base64,${base64}`;

/** An error answer's body. */
export function encodeError(error: ProxyError): JsonObject {
  const { param = null, code = null } = error.details;
  return { error: { message: error.message, type: kinds[error.kind].openai, param, code } };
}
