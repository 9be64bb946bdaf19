/** What the chat and the responses dialect have in common. */
import { errorKinds, type ProxyError } from "../lib/errors";
import { entryOf, isEmpty, isObject, numberIn } from "../lib/json";
import { beginningOfLong, joinTexts, type LongText, textFrom } from "../lib/net/json/json-skeleton";
import type { CacheHints } from "./codec";
import type { Conversation, ForeignTool, JsonObject, Turn, WithExtras } from "./hub/conversation";
import { arrayAt, refuse, textAt } from "./hub/json";
import { writtenType } from "./hub/media-types";
import type { ModelFacts } from "./hub/model";
import type { Notes } from "./hub/notes";
import type { BlockEnd } from "./hub/reply";

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

/** Only OpenAI's models give several replies, and only to requests that pass through. @throws ProxyError `invalid_request` */
export function refuseSeveral(n: unknown): void {
  if ((numberIn(n) ?? 1) > 1) refuse("n", "`n` must be 1: this model gives one answer at a time.");
}

/** One stop sequence or several. @throws ProxyError `invalid_request` naming the field. */
export function decodeStop(stop: unknown): string[] | undefined {
  if (stop == null) return undefined;
  return typeof stop === "string" ? [stop] : arrayAt(stop, "stop").map((word, index) => textAt(word, `stop[${index}]`));
}

type Choice = Pick<Conversation, "toolChoice" | "allowedTools">;

/** How a dialect writes the choice of a tool. */
interface ChoiceForm {
  /** The only tools that may be called, of a choice of the type `allowed_tools`. */
  allowed(choice: JsonObject): { mode: unknown; tools: (string | ForeignTool)[] };
  /** The name in a choice of this type. */
  nameIn(choice: JsonObject, type: "function" | "custom"): string;
}

/** `tool_choice`; a choice that the hub does not have is kept in the extras. @throws ProxyError `invalid_request` */
export function decodeToolChoice(choice: unknown, { allowed, nameIn }: ChoiceForm): Choice & { extras?: JsonObject } {
  if (choice == null) return {};
  if (choice === "auto" || choice === "none" || choice === "required") return { toolChoice: choice };
  const type = isObject(choice) ? choice.type : undefined;
  if (isObject(choice) && type === "allowed_tools") {
    const { mode, tools } = allowed(choice);
    return { toolChoice: mode === "required" ? "required" : "auto", allowedTools: tools };
  }
  if (!isObject(choice) || (type !== "function" && type !== "custom")) return { extras: { tool_choice: choice } };
  return { toolChoice: { name: nameIn(choice, type) } };
}

/** Sets the key of the prompt cache, unless the client set one. The body is changed in place. */
export function addCacheKey(body: JsonObject, cache: CacheHints | undefined, notes: Notes): void {
  if (cache?.key === undefined || body.prompt_cache_key != null) return;
  body.prompt_cache_key = cache.key;
  notes.addFixup("cache-key");
}

/** The annotations of a text, as the Responses API has them: OpenAI's own as they are, and the hub's citations. */
export function annotationsOf({ extras, citations = [] }: BlockEnd): unknown[] {
  const own = extras?.openai?.annotations;
  const hubs = citations.map(({ url, title, start, end }) => {
    return { type: "url_citation", url, title, start_index: start, end_index: end };
  });
  return [...(Array.isArray(own) ? own : []), ...hubs];
}

/** The content of a data URL. */
interface Data {
  mediaType: string;
  base64: LongText;
}

/**
 * Reads `data:<media type>;base64,<data>` without copying the data, and a short data URL whose data is percent-encoded (RFC 2397);
 * undefined for any other URL.
 */
export function dataOf(url: LongText): Data | undefined {
  const beginning = beginningOfLong(url, 300);
  if (!beginning.startsWith("data:")) return undefined;
  const end = beginning.indexOf(";base64,");
  if (end !== -1)
    return { mediaType: beginning.slice("data:".length, end), base64: textFrom(url, end + ";base64,".length) };
  const comma = beginning.indexOf(",");
  if (comma === -1 || typeof url !== "string") return undefined;
  const mediaType = beginning.slice("data:".length, comma) || "text/plain";
  return { mediaType, base64: Buffer.from(bytesOf(url.slice(comma + 1))).toString("base64") };
}

/** The bytes of a percent-encoded text. */
const bytesOf = (text: string): Uint8Array =>
  Buffer.from(
    Buffer.from(text)
      .toString("latin1")
      .replace(/%([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
    "latin1",
  );

/** Types that each model with eyes takes. */
const plainImages = new Set(["image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"]);

/**
 * A note in place of an image that the model cannot see, or of a type that it does not take; undefined for any other image.
 * Copilot refuses it on each later turn too: "image media type not supported" (github/copilot-cli#2030, 2026-03).
 */
export function noteOfImage(url: unknown, { limits, supports }: ModelFacts): string | undefined {
  if (!supports.vision) return "[An image, which this model cannot see.]";
  const taken = limits.vision?.mediaTypes;
  const type = typeof url === "string" && taken ? dataOf(url)?.mediaType.replace(/;.*/s, "").toLowerCase() : undefined;
  if (type === undefined || plainImages.has(type) || taken?.includes(type)) return undefined;
  return `[An image of the type ${writtenType(type)}, which this model cannot see.]`;
}

/** The data URL. */
export const dataUrl = ({ mediaType, base64 }: Data): LongText => joinTexts([`data:${mediaType};base64,`, base64]);

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

/** OpenAI refuses an object schema without `properties`. The same schema if it has them, or is of another type. */
export const withProperties = (schema: unknown): unknown =>
  !isObject(schema) || schema.type !== "object" || "properties" in schema ? schema : { ...schema, properties: {} };

/** The body of an error response. */
export function encodeError(error: ProxyError): JsonObject {
  const { param = null, code = null } = error.details;
  return { error: { message: error.message, type: errorKinds[error.kind].openai, param, code } };
}
