/** What the chat and the responses dialect have in common. */
import { kinds, type ProxyError } from "../errors";
import { entryOf, isEmpty } from "../json";
import { beginningOf, joinTexts, type LongText, textFrom } from "../net/json/json-skeleton";
import type { CacheHints } from "./codec";
import type { JsonObject, Turn, WithExtras } from "./hub/conversation";
import { arrayAt, textAt } from "./hub/json";

/** The hub's roles by wire role. */
export const roles: Record<string, Turn["role"]> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
};

/** OpenAI extras; an empty object if there are none. @param chat Those that only the chat API has. */
export function extrasOf(openai: JsonObject | undefined, chat?: JsonObject): WithExtras {
  const extras = {
    ...(openai && !isEmpty(openai) ? { openai } : {}),
    ...(chat && !isEmpty(chat) ? { chat } : {}),
  };
  return isEmpty(extras) ? {} : { extras };
}

/** The client's session id, if the dialect has a field for it; not validated. */
export const sessionOf = ({ prompt_cache_key }: JsonObject): unknown => prompt_cache_key;

/** One stop sequence or several. @throws ProxyError `invalid_request` naming the field. */
export function decodeStop(stop: unknown): string[] | undefined {
  if (stop == null) return undefined;
  return typeof stop === "string" ? [stop] : arrayAt(stop, "stop").map((word, index) => textAt(word, `stop[${index}]`));
}

/** Sets the key of the prompt cache, unless the client set one. The body is changed in place. */
export function addCacheKey(body: JsonObject, cache: CacheHints | undefined): string[] {
  if (cache?.key === undefined || body.prompt_cache_key != null) return [];
  body.prompt_cache_key = cache.key;
  return ["cache-key"];
}

/** The content of a data URL. */
interface Data {
  mediaType: string;
  base64: LongText;
}

/** Reads `data:<media type>;base64,<data>` without copying the data; undefined for any other URL. */
export function dataOf(url: LongText): Data | undefined {
  const beginning = beginningOf(url).slice(0, 300);
  const end = beginning.startsWith("data:") ? beginning.indexOf(";base64,") : -1;
  if (end === -1) return undefined;
  return { mediaType: beginning.slice("data:".length, end), base64: textFrom(url, end + ";base64,".length) };
}

/** The data URL. */
export const dataUrl = ({ mediaType, base64 }: Data): LongText => joinTexts(`data:${mediaType};base64,`, base64);

const extensions: Record<string, string> = { "text/plain": "txt", "text/markdown": "md" };

/**
 * A file with a name; the same object if it has one, or no data. OpenAI refuses others: "Missing required parameter:
 * 'messages[1].content[0].file.file_id'" (community.openai.com/t/1144263).
 */
export function withFileName(file: JsonObject): JsonObject {
  const { filename, file_data: data } = file;
  if (filename != null || typeof data !== "string") return file;
  const type = (dataOf(data)?.mediaType ?? "").toLowerCase().replace(/;.*/s, "");
  const extension = entryOf(extensions, type) ?? /^[\w-]+\/(\w{1,8})$/.exec(type)?.[1];
  return { ...file, filename: extension === undefined ? "document" : `document.${extension}` };
}

/** The body of an error response. */
export function encodeError(error: ProxyError): JsonObject {
  const { param = null, code = null } = error.details;
  return { error: { message: error.message, type: kinds[error.kind].openai, param, code } };
}
