/** Images as Anthropic takes them. */
import { isObject } from "../../lib/json";
import { beginningOfLong, type LongText } from "../../lib/net/json/json-skeleton";
import type { JsonObject } from "../hub/conversation";
import { omitUndefined } from "../hub/json";
import { writtenType } from "../hub/media-types";
import { dataOf } from "../openai";
import { eachBlock, eachResultBlock } from "./traverse";

/**
 * The types of images that Anthropic takes, and how they begin, in base64. It refuses one whose bytes are of another type than
 * it says, which OpenAI and Google ignore.
 */
const beginnings: readonly [beginning: RegExp, mediaType: string][] = [
  [/^iVBORw0KGgo/, "image/png"],
  [/^\/9j\//, "image/jpeg"],
  [/^R0lGOD[dl]/, "image/gif"],
  [/^UklGR.{6}XRUJQ/, "image/webp"],
];

/** Anthropic accepts only the plain media type (`image/jpeg`, without parameters). */
export function plainType(mediaType: string): string {
  const bare = mediaType.replace(/;.*/s, "").trim().toLowerCase();
  return bare === "image/jpg" ? "image/jpeg" : bare;
}

/**
 * The block of an image. One of a type that Anthropic refuses is a note: it stays in the conversation, and would end each later
 * turn. `leftOut` names it then.
 */
export function imageBlock({ mediaType, base64 }: { mediaType: string; base64: LongText }): {
  block: JsonObject;
  leftOut?: string;
} {
  const beginning = beginningOfLong(base64, 32);
  const media_type = beginnings.find(([begins]) => begins.test(beginning))?.[1] ?? plainType(mediaType);
  if (beginnings.some(([, type]) => type === media_type))
    return { block: { type: "image", source: { type: "base64", media_type, data: base64 } } };
  const type = writtenType(media_type);
  const text = `[An image of the type ${type}, which this model cannot see: it takes PNG, JPEG, GIF and WebP.]`;
  return { block: { type: "text", text }, leftOut: `image of type ${type}` };
}

/**
 * "image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'": also for the SVG that
 * an MCP server answers with (anthropics/claude-code#15807, 2025-12).
 */
export function imageTypes(body: JsonObject): JsonObject | undefined {
  const inMessages = eachBlock(body, withOwnType);
  return eachResultBlock({ ...body, ...inMessages }, withOwnType) ?? inMessages;
}

function withOwnType(image: JsonObject): JsonObject {
  const { type, source, cache_control } = image;
  if (type !== "image" || !isObject(source)) return image;
  const { media_type: mediaType, data: base64 } = source;
  const data = source.type === "url" && typeof source.url === "string" ? dataOf(source.url) : undefined;
  if (data) return omitUndefined({ ...imageBlock(data).block, cache_control });
  if (source.type !== "base64" || typeof mediaType !== "string" || typeof base64 !== "string") return image;
  const { block } = imageBlock({ mediaType, base64 });
  const isSame = isObject(block.source) && block.source.media_type === mediaType;
  return isSame ? image : omitUndefined({ ...block, cache_control });
}
