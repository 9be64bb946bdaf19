/** The parts of a chat message: text, images, files, thinking, calls and their results. */

import { ProxyError } from "../../errors";
import { isObject } from "../../json";
import { asChatExtras } from "../hub/chat-extras";
import type { JsonObject, Part, ThinkingPart, ToolCallPart, ToolResultPart } from "../hub/conversation";
import { nameOf } from "../hub/foreign";
import { arrayAt, objectAt, omit, omitUndefined, textAt } from "../hub/json";
import type { ModelFacts } from "../hub/model";
import { unpackSignature } from "../hub/signature";
import { dataOf, dataUrl, extrasOf } from "../openai";
import { cacheOf, nested, ownExtras } from "./extras";
import { isClaude, isOpenAi } from "./rules";
import { thoughtIn } from "./thinking";

// ── Wire facts ──

const knownFields = {
  result: new Set(["role", "content", "tool_call_id", "cache_control", "copilot_cache_control"]),
  part: new Set(["type", "text", "refusal", "image_url", "file", "cache_control"]),
  image: new Set(["url", "detail"]),
  file: new Set(["file_data", "filename"]),
  call: new Set(["type", "id", "function", "custom"]),
  callDefinition: new Set(["name", "arguments", "input"]),
};

// ── Decode ──

/** At most one part: a message has its thinking and signature beside its content. */
export function decodeThinking(message: JsonObject): ThinkingPart[] {
  const text = thoughtIn(message);
  const opaque = message.reasoning_opaque;
  const hasProof = typeof opaque === "string" && opaque !== "";
  if (text === "" && !hasProof) return [];
  const part: ThinkingPart = { kind: "thinking", text };
  return [hasProof ? { ...part, signature: unpackSignature(opaque, "chat") } : part];
}

/** @throws ProxyError `invalid_request` naming the field. */
export function decodeCall(call: JsonObject, path: string): ToolCallPart {
  const kind = call.type === "custom" ? "custom" : "function";
  const definition = objectAt(call[kind], `${path}.${kind}`);
  const input = kind === "custom" ? "input" : "arguments";
  return {
    kind: "tool-call",
    id: textAt(call.id, `${path}.id`),
    name: textAt(definition.name, `${path}.${kind}.name`),
    input: textAt(definition[input] ?? "", `${path}.${kind}.${input}`),
    ...(kind === "custom" ? ({ freeform: true } as const) : {}),
    ...extrasOf(
      asChatExtras({ ...omit(call, knownFields.call), ...nested(kind, omit(definition, knownFields.callDefinition)) }),
    ),
  };
}

/** A message of the role `tool`. @throws ProxyError `invalid_request` naming the field. */
export function decodeResult(message: JsonObject, path: string): ToolResultPart {
  return {
    kind: "tool-result",
    id: textAt(message.tool_call_id, `${path}.tool_call_id`),
    parts: decodeContent(message.content, `${path}.content`),
    ...cacheOf(message),
    ...extrasOf(asChatExtras(omit(message, knownFields.result))),
  };
}

/** A string or a list of parts. @throws ProxyError `invalid_request` for anything else. */
export function decodeContent(content: unknown, path: string): Part[] {
  if (content == null) return [];
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  return arrayAt(content, path).map((part, index) => decodePart(objectAt(part, `${path}[${index}]`)));
}

/** An unexpected part is kept as it is: the upstream may support it. */
function decodePart(part: JsonObject): Part {
  const extras = asChatExtras(omit(part, knownFields.part));
  if (part.type === "text" && typeof part.text === "string")
    return { kind: "text", text: part.text, ...cacheOf(part), ...extrasOf(extras) };
  if (part.type === "refusal" && typeof part.refusal === "string")
    return { kind: "text", text: part.refusal, refusal: true, ...extrasOf(extras) };
  if (part.type === "image_url") {
    const image = isObject(part.image_url) ? part.image_url : { url: part.image_url };
    const { url, detail } = image;
    if (typeof url === "string")
      return {
        kind: "image",
        source: dataOf(url) ?? { url },
        ...cacheOf(part),
        ...extrasOf(
          omitUndefined({
            detail,
            ...asChatExtras({
              ...omit(part, knownFields.part),
              ...nested("image_url", omit(image, knownFields.image)),
            }),
          }),
        ),
      };
  }
  if (part.type === "file" && isObject(part.file) && typeof part.file.file_data === "string") {
    const data = dataOf(part.file.file_data);
    const name = typeof part.file.filename === "string" ? { name: part.file.filename } : {};
    if (data)
      return {
        kind: "file",
        ...name,
        ...data,
        ...cacheOf(part),
        ...extrasOf(
          asChatExtras({ ...omit(part, knownFields.part), ...nested("file", omit(part.file, knownFields.file)) }),
        ),
      };
  }
  return { kind: "foreign", dialect: "chat", value: part };
}

// ── Encode ──

/** A call as an element of `tool_calls`. */
export function encodeCall({ id, name, input, freeform, ...part }: ToolCallPart, dropped: Set<string>): JsonObject {
  const { function: ofFunction, custom: ofCustom, name: _, ...extras } = ownExtras(part, dropped);
  if (freeform)
    return {
      ...extras,
      id: wireId(id),
      type: "custom",
      custom: { ...(isObject(ofCustom) ? ofCustom : {}), name, input },
    };
  const definition = { ...(isObject(ofFunction) ? ofFunction : {}), name, arguments: input };
  return { ...extras, id: wireId(id), type: "function", function: definition };
}

/** A message of the role `tool`. */
export function encodeResult(part: ToolResultPart, model: ModelFacts, dropped: Set<string>): JsonObject {
  if (part.failed) dropped.add("is_error");
  return {
    ...ownExtras(part, dropped),
    role: "tool",
    tool_call_id: wireId(part.id),
    content: serialized(encodeContent(part.parts, model, dropped), model),
    ...encodeCache([part, ...part.parts], model, dropped),
  };
}

/**
 * What the model does not support is left out and named in `dropped`.
 * @throws ProxyError `invalid_request` for a file that the model cannot read.
 */
export function encodeContent(parts: Part[], model: ModelFacts, dropped: Set<string>): JsonObject[] {
  return parts.map((part) => encodePart(part, model, dropped)).filter((part) => part !== undefined);
}

function encodePart(part: Part, model: ModelFacts, dropped: Set<string>): JsonObject | undefined {
  const extras = ownExtras(part, dropped);
  if (part.kind === "text") return part.text === "" ? undefined : { ...extras, type: "text", text: part.text };
  if (part.kind === "image") {
    const { detail, image_url: unread, ...others } = extras;
    if (!model.supports.vision) {
      dropped.add("image");
      return { type: "text", text: "[An image, which this model cannot see.]" };
    }
    const { source } = part;
    const url = "url" in source ? source.url : dataUrl(source);
    return {
      ...others,
      type: "image_url",
      image_url: omitUndefined({ ...(isObject(unread) ? unread : {}), url, detail: detail ?? undefined }),
    };
  }
  if (part.kind === "file") {
    const { file: unread, ...others } = extras;
    if (!isOpenAi(model))
      throw new ProxyError(
        "invalid_request",
        `${model.id} reads no files; send the text of ${part.name ?? "the file"} instead.`,
        {
          param: "messages",
        },
      );
    const file_data = dataUrl(part);
    return {
      ...others,
      type: "file",
      file: omitUndefined({ ...(isObject(unread) ? unread : {}), filename: part.name, file_data }),
    };
  }
  if (part.kind === "file-link") {
    dropped.add("file by its address");
    const file = part.name === undefined ? "A file" : `The file "${part.name}"`;
    return { type: "text", text: `[${file} at ${part.url}, which this model cannot open.]` };
  }
  if (part.kind === "foreign" && part.dialect === "chat" && isObject(part.value)) return part.value;
  dropped.add(part.kind === "foreign" ? nameOf(part) : part.kind);
  return undefined;
}

/** Plain text becomes a string; several texts are joined if the model may not accept a list. */
export function serialized(content: JsonObject[], model: ModelFacts): unknown {
  const isPlain = content.every((part) => part.type === "text" && Object.keys(part).length === 2);
  if (!isPlain || (content.length > 1 && (isOpenAi(model) || isClaude(model)))) return content;
  return content.map((part) => part.text).join("\n\n");
}

/** Cache marks in Anthropic's form; a rule converts them to Copilot's. */
export function encodeCache(parts: Part[], model: ModelFacts, dropped: Set<string>): JsonObject {
  if (!parts.some((part) => part.cache)) return {};
  if (isClaude(model)) return { cache_control: { type: "ephemeral" } };
  dropped.add("cache_control");
  return {};
}

/** OpenAI accepts ids of up to 40 characters in chat, fewer than in the responses dialect. */
function wireId(id: string): string {
  return id.length <= 40 ? id : `${id.slice(0, 26)}_${Bun.hash(id).toString(36).padStart(13, "0")}`;
}
