/** The content of a message: a list of blocks. */

import { isObject } from "../../lib/json";
import { readUnmarked } from "../../lib/net/json/json-skeleton";
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
import { Fields } from "../hub/fields";
import { nameOf } from "../hub/foreign";
import { listAt, omitUndefined, optionalText, textAt } from "../hub/json";
import { writtenType } from "../hub/media-types";
import type { Notes } from "../hub/notes";
import { signedThinking, unpackSignature } from "../hub/signature";
import { inputObject } from "../hub/tool-input";
import { dataOf } from "../openai";
import { dropExtras, nestedExtras, restoreCacheMark, withCacheMark } from "./extras";
import { imageBlock, plainType } from "./images";
import { decodeServerCall, serverResultDecoders } from "./server-tools";

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
  const block = Fields.at(value, path);
  const decoder = partDecoders.get(textAt(block.object.type, block.pathOf("type")));
  return decoder?.(block) ?? { kind: "foreign", dialect: "messages", value: block.object };
}

/** Each returns undefined for a block that only this dialect has. A type that nobody reads becomes an extra. */
const partDecoders = new Map<string, (block: Fields) => Part | undefined>([
  ["text", decodeText],
  ["image", decodeImage],
  ["document", decodeDocument],
  ["search_result", decodeSearchResult],
  ["tool_reference", decodeToolReference],
  ["compaction", decodeCompaction],
  ["thinking", decodeThinking],
  ["redacted_thinking", decodeRedacted],
  ["tool_use", decodeToolUse],
  ["tool_result", decodeToolResult],
  ["server_tool_use", decodeServerCall],
  ...serverResultDecoders,
]);

function decodeText(block: Fields): TextPart {
  block.skip("type");
  return { kind: "text", text: block.text("text"), ...withCacheMark(block) };
}

function decodeImage(block: Fields): ImagePart | undefined {
  block.skip("type");
  const source = sourceOf(block);
  const { type } = source.object;
  if (type !== "url" && type !== "base64") return undefined;
  const image = type === "url" ? { url: source.text("url") } : base64Of(source);
  return { kind: "image", source: image, ...withCacheMark(block, nestedExtras("source", source)) };
}

/** A PDF is a file, plain text is a text; a document with a title or of blocks is foreign with text `instead`. */
function decodeDocument(block: Fields): FilePart | FileLinkPart | TextPart | ForeignPart | undefined {
  const source = sourceOf(block);
  const title = optionalText(block.object.title, block.pathOf("title"));
  const heading = [title && `Document: ${title}`, optionalText(block.object.context, block.pathOf("context"))];
  const meta = () => withCacheMark(block, nestedExtras("source", source));
  switch (source.object.type) {
    case "text": {
      const text = source.text("data");
      if (heading.some((line) => line)) return inWords(block, heading, [{ kind: "text", text }]);
      return { kind: "text", text, ...meta() };
    }
    case "content":
      return inWords(block, heading, decodeContent(source.any("content"), source.pathOf("content")));
    case "url": {
      block.skip("type", "title");
      const name = title === undefined ? {} : { name: title };
      return { kind: "file-link", ...name, url: source.text("url"), ...meta() };
    }
    case "base64":
      block.skip("type", "title");
      return { kind: "file", name: title, ...base64Of(source), ...meta() };
    default:
      return undefined;
  }
}

/** The source of an image or a document. */
function sourceOf(block: Fields): Fields {
  const source = block.fields("source");
  source.skip("type", "media_type", "data", "url");
  return source;
}

/** A client's search result: its texts and their source. */
function decodeSearchResult(block: Fields): ForeignPart {
  const title = block.optionalText("title");
  const source = block.optionalText("source");
  const heading = `Search result: ${[title, source].filter((line) => line).join(", ")}`;
  return inWords(block, [heading], decodeContent(block.any("content"), block.pathOf("content")));
}

/** A summary in place of the beginning of the conversation. */
function decodeCompaction(block: Fields): ForeignPart {
  return inWords(block, [], decodeContent(block.any("content") ?? "", block.pathOf("content")));
}

/** The tool that a tool search found. */
function decodeToolReference(block: Fields): ForeignPart {
  const name = block.text("tool_name");
  return {
    ...inWords(block, [`The tool \`${name}\` was found: it can be called now.`], []),
    toolSearch: { found: [name] },
  };
}

/** A block that only this dialect has, with its content as `instead`. */
function inWords({ object }: Fields, heading: (string | undefined)[], parts: Part[]): ForeignPart {
  const lines = heading.filter((line) => line).join("\n");
  const instead: Part[] = lines === "" ? parts : [{ kind: "text", text: lines }, ...parts];
  const last = instead.at(-1);
  if (last && object.cache_control != null) instead[instead.length - 1] = { ...last, cache: true };
  return { kind: "foreign", dialect: "messages", value: object, instead };
}

const base64Of = (source: Fields) => ({ mediaType: source.text("media_type"), base64: source.text("data") });

function decodeThinking(block: Fields): ThinkingPart {
  block.skip("type");
  const proof = block.optionalText("signature");
  const text = block.optionalText("thinking") ?? "";
  return {
    ...(proof ? signedThinking(text, unpackSignature(proof, "messages")) : { kind: "thinking", text }),
    ...withCacheMark(block),
  };
}

/** A signature without text: Anthropic's own, or one that dragoman packed of another dialect. */
function decodeRedacted(block: Fields): ThinkingPart {
  block.skip("type");
  const signature = unpackSignature(block.text("data"), "messages");
  if (signature.dialect !== "messages") return signedThinking("", signature);
  return { kind: "thinking", text: "", signature: { ...signature, redacted: true }, ...withCacheMark(block) };
}

function decodeToolUse(block: Fields): ToolCallPart {
  block.skip("type");
  const { caller } = block.object;
  // As every call is in the other dialects.
  if (isObject(caller) && caller.type === "direct") block.skip("caller");
  return {
    kind: "tool-call",
    id: block.text("id"),
    name: block.text("name"),
    input: inputIn(block.any("input")),
    ...withCacheMark(block),
  };
}

/** A text is a client's mistake, and is taken for the JSON that it has. */
const inputIn = (input: unknown): string => (typeof input === "string" ? input : JSON.stringify(input ?? {}));

function decodeToolResult(block: Fields): ToolResultPart {
  block.skip("type");
  const failed = block.optionalBoolean("is_error");
  return {
    kind: "tool-result",
    id: block.text("tool_use_id"),
    parts: decodeContent(block.any("content"), block.pathOf("content")),
    ...(failed ? { failed } : {}),
    ...withCacheMark(block),
  };
}

// ── Encode ──

/** Undefined for what the dialect does not have; it is noted as dropped. */
export function encodePart(part: Part, notes: Notes): JsonObject | undefined {
  dropExtras(part, notes);
  switch (part.kind) {
    case "text":
      return encodeText(part);
    case "image":
      return encodeImage(part, notes);
    case "file":
      return encodeFile(part, notes);
    case "file-link":
      return restoreCacheMark(
        omitUndefined({ type: "document", source: { type: "url", url: part.url }, title: part.name }),
        part,
      );
    case "thinking":
      return encodeThinking(part, notes);
    case "tool-call":
      return restoreCacheMark({ type: "tool_use", id: part.id, name: part.name, input: inputObject(part) }, part);
    case "tool-result":
      return encodeToolResult(part, notes);
    case "server-call":
    case "server-result":
      // `adapt` has made functions of them.
      notes.addDropped(part.tool);
      return undefined;
    case "foreign": {
      if (part.dialect === "messages") return part.value;
      notes.addDropped(nameOf(part));
      return undefined;
    }
    default:
      return part satisfies never;
  }
}

function encodeText(part: TextPart): JsonObject {
  if (part.extras?.anthropic?.type !== "document") return restoreCacheMark({ type: "text", text: part.text }, part);
  const source = { type: "text", media_type: "text/plain", data: part.text };
  return restoreCacheMark({ type: "document", source }, part);
}

function encodeImage(part: ImagePart, notes: Notes): JsonObject {
  const { source } = part;
  const data = "base64" in source ? source : dataOf(source.url);
  if (!data)
    return restoreCacheMark({ type: "image", source: { type: "url", url: "url" in source ? source.url : "" } }, part);
  const { block, leftOut } = imageBlock(data);
  if (leftOut !== undefined) notes.addDropped(leftOut);
  return restoreCacheMark(block, part);
}

/** PDF and text files can be read; any other file is replaced by a note to the model. */
function encodeFile(part: FilePart, notes: Notes): JsonObject {
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
  notes.addDropped(`file of type ${writtenType(mediaType)}`);
  const notice = `[The file ${title ?? ""} (${mediaType}) was left out: only PDF and text files can be read here.]`;
  return { type: "text", text: notice };
}

function encodeThinking(part: ThinkingPart, notes: Notes): JsonObject | undefined {
  const { signature, text } = part;
  if (signature?.dialect === "messages") {
    return signature.redacted
      ? restoreCacheMark({ type: "redacted_thinking", data: signature.value }, part)
      : restoreCacheMark({ type: "thinking", thinking: text, signature: signature.value }, part);
  }
  notes.addDropped("thinking");
}

function encodeToolResult(part: ToolResultPart, notes: Notes): JsonObject {
  const blocks = part.parts.flatMap<JsonObject>((inner) => encodePart(inner, notes) ?? []);
  const content = blocks.length === 0 ? undefined : simplified(blocks);
  return restoreCacheMark(
    omitUndefined({ type: "tool_result", tool_use_id: part.id, content, is_error: part.failed }),
    part,
  );
}

/** A single plain text block is written as a string. */
export function simplified(content: unknown): unknown {
  if (!Array.isArray(content) || content.length !== 1) return content;
  const block: unknown = content[0];
  return isObject(block) && block.type === "text" && Object.keys(block).length === 2 ? block.text : content;
}
