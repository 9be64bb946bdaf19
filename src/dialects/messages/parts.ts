/** The content of a message: a list of blocks. */

import { isObject } from "../../json";
import { readUnmarked } from "../../net/json-skeleton";
import type {
  FileLinkPart,
  FilePart,
  ForeignPart,
  ImagePart,
  JsonObject,
  Part,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolResultPart,
} from "../hub/conversation";
import { listAt, objectAt, omitUndefined, optionalBoolean, optionalText, textAt } from "../hub/json";
import { unpackSignature } from "../hub/signature";
import { inputObject } from "../hub/tool-input";
import { dataOf } from "../openai";
import { dropExtras, keySet, kindOfPart, nestedExtras, restoreCacheMark, withCacheMark } from "./extras";
import { decodeServerCall, encodeServerPart, serverResultDecoders } from "./server-tools";

// ── Wire facts ──

const knownFields = {
  text: keySet("type text cache_control"),
  source: keySet("type media_type data url"),
  image: keySet("type source cache_control"),
  file: keySet("type source title cache_control"),
  textDocument: keySet("source cache_control"),
  thinkingBlock: keySet("type thinking signature cache_control"),
  redactedBlock: keySet("data cache_control"),
  toolUse: keySet("type id name input cache_control"),
  toolResult: keySet("type tool_use_id content is_error cache_control"),
};

// ── Decode ──

/**
 * A string or a list of blocks; a block that only this dialect has becomes a foreign part.
 * @throws ProxyError `invalid_request` naming the field.
 */
export function decodeContent(content: unknown, path: string): Part[] {
  if (typeof content !== "string")
    return listAt(content, path).map((block, index) => decodePart(block, `${path}[${index}]`));
  return content === "" ? [] : [{ kind: "text", text: content }];
}

function decodePart(value: unknown, path: string): Part {
  const block = objectAt(value, path);
  const decoder = partDecoders.get(textAt(block.type, `${path}.type`));
  return decoder?.(block, path) ?? { kind: "foreign", dialect: "messages", value: block };
}

/** Each returns undefined for a block that only this dialect has. */
const partDecoders = new Map<string, (block: JsonObject, path: string) => Part | undefined>([
  ["text", decodeText],
  ["image", decodeImage],
  ["document", decodeDocument],
  ["search_result", decodeSearchResult],
  ["tool_reference", decodeToolReference],
  ["thinking", decodeThinking],
  ["redacted_thinking", decodeRedacted],
  ["tool_use", decodeToolUse],
  ["tool_result", decodeToolResult],
  ["server_tool_use", decodeServerCall],
  ...serverResultDecoders,
]);

function decodeText(block: JsonObject, path: string): TextPart {
  return { kind: "text", text: textAt(block.text, `${path}.text`), ...withCacheMark(block, knownFields.text) };
}

function decodeImage(block: JsonObject, path: string): ImagePart | undefined {
  const source = objectAt(block.source, `${path}.source`);
  const meta = withCacheMark(block, knownFields.image, nestedExtras("source", source, knownFields.source));
  if (source.type === "url")
    return { kind: "image", source: { url: textAt(source.url, `${path}.source.url`) }, ...meta };
  if (source.type !== "base64") return undefined;
  return { kind: "image", source: base64Of(source, path), ...meta };
}

/** A PDF is a file, plain text is a text; a document with a title or of blocks is foreign with text `instead`. */
function decodeDocument(block: JsonObject, path: string): FilePart | FileLinkPart | TextPart | ForeignPart | undefined {
  const source = objectAt(block.source, `${path}.source`);
  const inner = nestedExtras("source", source, knownFields.source);
  const title = optionalText(block.title, `${path}.title`);
  const heading = [title && `Document: ${title}`, optionalText(block.context, `${path}.context`)];
  if (source.type === "text") {
    const text = textAt(source.data, `${path}.source.data`);
    if (heading.some((line) => line)) return inWords(block, heading, [{ kind: "text", text }]);
    return { kind: "text", text, ...withCacheMark(block, knownFields.textDocument, inner) };
  }
  if (source.type === "content")
    return inWords(block, heading, decodeContent(source.content, `${path}.source.content`));
  if (source.type === "url") {
    const url = textAt(source.url, `${path}.source.url`);
    return {
      kind: "file-link",
      ...(title === undefined ? {} : { name: title }),
      url,
      ...withCacheMark(block, knownFields.file, inner),
    };
  }
  if (source.type !== "base64") return undefined;
  return { kind: "file", name: title, ...base64Of(source, path), ...withCacheMark(block, knownFields.file, inner) };
}

/** A client's search result: its texts and their source. */
function decodeSearchResult(block: JsonObject, path: string): ForeignPart {
  const title = optionalText(block.title, `${path}.title`);
  const source = optionalText(block.source, `${path}.source`);
  const heading = `Search result: ${[title, source].filter((line) => line).join(", ")}`;
  return inWords(block, [heading], decodeContent(block.content, `${path}.content`));
}

/** The tool that a tool search found. */
function decodeToolReference(block: JsonObject, path: string): ForeignPart {
  const name = textAt(block.tool_name, `${path}.tool_name`);
  return {
    ...inWords(block, [`The tool \`${name}\` was found: it can be called now.`], []),
    toolSearch: { found: [name] },
  };
}

/** A block that only this dialect has, with its content as `instead`. */
function inWords(block: JsonObject, heading: (string | undefined)[], parts: Part[]): ForeignPart {
  const lines = heading.filter((line) => line).join("\n");
  const instead: Part[] = lines === "" ? parts : [{ kind: "text", text: lines }, ...parts];
  const last = instead.at(-1);
  if (last && block.cache_control != null) instead[instead.length - 1] = { ...last, cache: true };
  return { kind: "foreign", dialect: "messages", value: block, instead };
}

function base64Of(source: JsonObject, path: string): { mediaType: string; base64: string } {
  return {
    mediaType: textAt(source.media_type, `${path}.source.media_type`),
    base64: textAt(source.data, `${path}.source.data`),
  };
}

function decodeThinking(block: JsonObject, path: string): ThinkingPart {
  const proof = optionalText(block.signature, `${path}.signature`);
  return {
    kind: "thinking",
    text: optionalText(block.thinking, `${path}.thinking`) ?? "",
    ...(proof ? { signature: unpackSignature(proof, "messages") } : {}),
    ...withCacheMark(block, knownFields.thinkingBlock),
  };
}

/** A signature without text. The extras keep the block's type, unless dragoman packed another dialect's signature. */
function decodeRedacted(block: JsonObject, path: string): ThinkingPart {
  const signature = unpackSignature(textAt(block.data, `${path}.data`), "messages");
  const own = signature.dialect === "messages";
  return { kind: "thinking", text: "", signature, ...(own ? withCacheMark(block, knownFields.redactedBlock) : {}) };
}

function decodeToolUse(block: JsonObject, path: string): ToolCallPart {
  return {
    kind: "tool-call",
    id: textAt(block.id, `${path}.id`),
    name: textAt(block.name, `${path}.name`),
    input: JSON.stringify(block.input ?? {}),
    ...withCacheMark(block, knownFields.toolUse),
  };
}

function decodeToolResult(block: JsonObject, path: string): ToolResultPart {
  const failed = optionalBoolean(block.is_error, `${path}.is_error`);
  return {
    kind: "tool-result",
    id: textAt(block.tool_use_id, `${path}.tool_use_id`),
    parts: decodeContent(block.content, `${path}.content`),
    ...(failed ? { failed } : {}),
    ...withCacheMark(block, knownFields.toolResult),
  };
}

// ── Encode ──

/** Undefined for what the dialect does not have; its name is added to `dropped`. */
export function encodePart(part: Part, dropped: Set<string>): JsonObject | undefined {
  dropExtras(part, dropped);
  switch (part.kind) {
    case "text":
      return encodeText(part);
    case "image":
      return restoreCacheMark({ type: "image", source: imageSource(part.source) }, part);
    case "file":
      return encodeFile(part, dropped);
    case "file-link":
      return restoreCacheMark(
        omitUndefined({ type: "document", source: { type: "url", url: part.url }, title: part.name }),
        part,
      );
    case "thinking":
      return encodeThinking(part, dropped);
    case "tool-call":
      return restoreCacheMark({ type: "tool_use", id: part.id, name: part.name, input: inputObject(part) }, part);
    case "tool-result":
      return encodeToolResult(part, dropped);
    case "server-call":
    case "server-result":
      return encodeServerPart(part);
    case "foreign": {
      if (part.dialect === "messages" && isObject(part.value)) return part.value;
      dropped.add(kindOfPart(part.value));
    }
  }
}

function encodeText(part: TextPart): JsonObject {
  if (part.extras?.anthropic?.type !== "document") return restoreCacheMark({ type: "text", text: part.text }, part);
  const source = { type: "text", media_type: "text/plain", data: part.text };
  return restoreCacheMark({ type: "document", source }, part);
}

function imageSource(source: ImagePart["source"]): JsonObject {
  const data = "base64" in source ? source : dataOf(source.url);
  if (data) return { type: "base64", media_type: plainType(data.mediaType), data: data.base64 };
  return { type: "url", url: "url" in source ? source.url : "" };
}

/** Anthropic accepts only the plain media type (`image/jpeg`, without parameters). */
function plainType(mediaType: string): string {
  const bare = mediaType.replace(/;.*/s, "").trim().toLowerCase();
  return bare === "image/jpg" ? "image/jpeg" : bare;
}

/** PDF and text files can be read; any other file is replaced by a note to the model. */
function encodeFile(part: FilePart, dropped: Set<string>): JsonObject {
  const { base64, name: title } = part;
  const mediaType = plainType(part.mediaType);
  if (mediaType === "application/pdf") {
    const source = { type: "base64", media_type: mediaType, data: base64 };
    return restoreCacheMark(omitUndefined({ type: "document", source, title }), part);
  }
  if (/^text\/|^application\/json$/.test(mediaType)) {
    // No dialect lets the data of a text file be marked: `long-texts.ts`.
    const data = Buffer.from(readUnmarked(base64), "base64").toString();
    const source = { type: "text", media_type: "text/plain", data };
    return restoreCacheMark(omitUndefined({ type: "document", source, title }), part);
  }
  dropped.add(`file of type ${mediaType}`);
  const notice = `[The file ${title ?? ""} (${mediaType}) was left out: only PDF and text files can be read here.]`;
  return { type: "text", text: notice };
}

function encodeThinking(part: ThinkingPart, dropped: Set<string>): JsonObject | undefined {
  const { signature, text, extras } = part;
  if (signature?.dialect === "messages") {
    return extras?.anthropic?.type === "redacted_thinking"
      ? restoreCacheMark({ type: "redacted_thinking", data: signature.value }, part)
      : restoreCacheMark({ type: "thinking", thinking: text, signature: signature.value }, part);
  }
  dropped.add("thinking");
}

function encodeToolResult(part: ToolResultPart, dropped: Set<string>): JsonObject {
  const blocks = part.parts.flatMap<JsonObject>((inner) => encodePart(inner, dropped) ?? []);
  const content = blocks.length === 0 ? undefined : plainest(blocks);
  return restoreCacheMark(
    omitUndefined({ type: "tool_result", tool_use_id: part.id, content, is_error: part.failed }),
    part,
  );
}

/** A single plain text block is written as a string. */
export function plainest(content: unknown): unknown {
  if (!Array.isArray(content) || content.length !== 1) return content;
  const block: unknown = content[0];
  return isObject(block) && block.type === "text" && Object.keys(block).length === 2 ? block.text : content;
}
