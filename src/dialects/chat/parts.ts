/** The parts of a chat message: text, images, files, thinking, calls and their results. */

import { quoted, words } from "../../lib/errors";
import { entryOf, isObject } from "../../lib/json";
import type { JsonObject, Part, ThinkingPart, ToolCallPart, ToolResultPart } from "../hub/conversation";
import { Fields } from "../hub/fields";
import { nameOf } from "../hub/foreign";
import { omitUndefined, refuse, textIn } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import type { Notes } from "../hub/notes";
import { signedThinking, unpackSignature } from "../hub/signature";
import { dataOf, dataUrl } from "../openai";
import { wireId } from "./calls";
import { cacheOf, ownExtras, unreadExtras } from "./extras";
import { isClaude, isOpenAi } from "./rules";
import { thoughtIn } from "./thinking";

// ── Decode ──

/** At most one part: a message has its thinking and signature beside its content. */
export function decodeThinking(message: JsonObject): ThinkingPart[] {
  const text = thoughtIn(message);
  const opaque = message.reasoning_opaque;
  const hasProof = typeof opaque === "string" && opaque !== "";
  if (text === "" && !hasProof) return [];
  const part: ThinkingPart = { kind: "thinking", text };
  return [hasProof ? signedThinking(text, unpackSignature(opaque, "chat")) : part];
}

/** @throws ProxyError `invalid_request` naming the field. */
export function decodeCall(value: unknown, path: string): ToolCallPart {
  const call = Fields.at(value, path);
  const kind = call.any("type") === "custom" ? "custom" : "function";
  const definition = call.fields(kind);
  return {
    kind: "tool-call",
    id: call.text("id"),
    name: definition.text("name"),
    input: definition.optionalText(kind === "custom" ? "input" : "arguments") ?? "",
    ...(kind === "custom" ? ({ freeform: true } as const) : {}),
    ...unreadExtras(call, { [kind]: definition }),
  };
}

/** A message of the role `tool`. @throws ProxyError `invalid_request` naming the field. */
export function decodeResult(message: Fields): ToolResultPart {
  message.skip("role");
  return {
    kind: "tool-result",
    id: message.text("tool_call_id"),
    parts: decodeContent(message),
    ...cacheOf(message),
    ...unreadExtras(message),
  };
}

/** The content of a message: a string or a list of parts. @throws ProxyError `invalid_request` for anything else. */
export function decodeContent(message: Fields): Part[] {
  const content = message.any("content");
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  return message.optionalList("content").map(([value, path]) => decodePart(Fields.at(value, path)));
}

/** An unexpected part is kept as it is: the upstream may support it. */
function decodePart(part: Fields): Part {
  const { text, refusal, image_url, file } = part.object;
  const type = part.any("type");
  if (type === "text" && typeof text === "string") {
    part.skip("text");
    return { kind: "text", text, ...cacheOf(part), ...unreadExtras(part) };
  }
  if (type === "refusal" && typeof refusal === "string") {
    part.skip("refusal");
    return { kind: "text", text: refusal, refusal: true, ...cacheOf(part), ...unreadExtras(part) };
  }
  if (type === "image_url") {
    part.skip(type);
    const image = new Fields(isObject(image_url) ? image_url : { url: image_url });
    const url = image.any("url");
    const detail = image.any("detail");
    if (typeof url === "string") {
      const cache = cacheOf(part);
      const extras = unreadExtras(part, { image_url: image }, omitUndefined({ detail }));
      return { kind: "image", source: dataOf(url) ?? { url }, ...cache, ...extras };
    }
  }
  if (type === "file" && isObject(file) && typeof file.file_data === "string") {
    part.skip(type);
    const data = dataOf(file.file_data);
    const inner = new Fields(file);
    inner.skip("file_data", "filename");
    const name = typeof file.filename === "string" ? { name: file.filename } : {};
    if (data) return { kind: "file", ...name, ...data, ...cacheOf(part), ...unreadExtras(part, { file: inner }) };
  }
  return { kind: "foreign", dialect: "chat", value: part.object };
}

// ── Encode ──

/** A call as an element of `tool_calls`. */
export function encodeCall({ id, name, input, ...part }: ToolCallPart, notes: Notes): JsonObject {
  const { function: ofFunction, custom: _custom, name: _, ...extras } = ownExtras(part, notes);
  const definition = { ...(isObject(ofFunction) ? ofFunction : {}), name, arguments: input };
  return { ...extras, id: wireId(id), type: "function", function: definition };
}

/** A message of the role `tool`. */
export function encodeResult(part: ToolResultPart, model: ModelFacts, notes: Notes): JsonObject {
  if (part.failed) notes.addDropped("is_error");
  return {
    ...ownExtras(part, notes),
    role: "tool",
    tool_call_id: wireId(part.id),
    content: serialized(encodeContent(part.parts, model, notes, "result"), model),
    ...encodeCache([part, ...part.parts], model, notes),
  };
}

/**
 * What the model does not support is left out and noted as dropped.
 * @param place In a tool's result, which stays in the conversation for ever, a file that the model cannot read becomes a note.
 * @throws ProxyError `invalid_request` for such a file anywhere else: a person has sent it.
 */
export function encodeContent(parts: Part[], model: ModelFacts, notes: Notes, place?: "result"): JsonObject[] {
  return parts.map((part) => encodePart(part, model, notes, place)).filter((part) => part !== undefined);
}

/**
 * How closely an image is looked at. `original`, which Codex says of screenshots, is the Responses API's: chat gateways refuse
 * it ("image_detail is invalid", farion1231/cc-switch#7555, September 2026), and with it each later turn of the session.
 */
const details: Record<string, string> = { auto: "auto", low: "low", high: "high", original: "high" };

function encodePart(part: Part, model: ModelFacts, notes: Notes, place: "result" | undefined): JsonObject | undefined {
  const extras = ownExtras(part, notes);
  if (part.kind === "text") return part.text === "" ? undefined : { ...extras, type: "text", text: part.text };
  if (part.kind === "image") {
    const { image_url: unread, ...others } = extras;
    if (!model.supports.vision) {
      notes.addDropped("image");
      return { type: "text", text: "[An image, which this model cannot see.]" };
    }
    const { source } = part;
    const url = "url" in source ? source.url : dataUrl(source);
    const detail = entryOf(details, textIn(part.extras?.openai?.detail));
    return {
      ...others,
      type: "image_url",
      image_url: omitUndefined({ ...(isObject(unread) ? unread : {}), url, detail }),
    };
  }
  if (part.kind === "file") {
    const { file: unread, ...others } = extras;
    if (!isOpenAi(model)) {
      if (place === "result") {
        notes.addDropped("file");
        return {
          type: "text",
          text: `[The file ${part.name ?? ""} (${part.mediaType}), which this model cannot read.]`,
        };
      }
      const file = part.name === undefined ? "the file" : quoted(part.name);
      refuse("messages", words`${model.id} reads no files; send the text of ${file} instead.`);
    }
    const file_data = dataUrl(part);
    return {
      ...others,
      type: "file",
      file: omitUndefined({ ...(isObject(unread) ? unread : {}), filename: part.name, file_data }),
    };
  }
  if (part.kind === "file-link") {
    notes.addDropped("file by its address");
    const file = part.name === undefined ? "A file" : `The file "${part.name}"`;
    return { type: "text", text: `[${file} at ${part.url}, which this model cannot open.]` };
  }
  if (part.kind === "foreign" && part.dialect === "chat") return part.value;
  notes.addDropped(part.kind === "foreign" ? nameOf(part) : part.kind);
  return undefined;
}

/** Plain text becomes a string; several texts are joined if the model may not accept a list. */
export function serialized(content: JsonObject[], model: ModelFacts): unknown {
  const isPlain = content.every((part) => part.type === "text" && Object.keys(part).length === 2);
  if (!isPlain || (content.length > 1 && (isOpenAi(model) || isClaude(model)))) return content;
  return content.map((part) => part.text).join("\n\n");
}

/** Cache marks in Anthropic's form; a rule converts them to Copilot's. */
export function encodeCache(parts: Part[], model: ModelFacts, notes: Notes): JsonObject {
  if (!parts.some((part) => part.cache)) return {};
  if (isClaude(model)) return { cache_control: { type: "ephemeral" } };
  notes.addDropped("cache_control");
  return {};
}
