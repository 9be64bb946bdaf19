/** The parts of a responses request: the content of messages, and the other items. */
import { isObject } from "../../json";
import type {
  Conversation,
  FileLinkPart,
  FilePart,
  ImagePart,
  JsonObject,
  Part,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  WithExtras,
} from "../hub/conversation";
import { arrayAt, objectAt, omit, omitUndefined, textAt } from "../hub/json";
import { unpackSignature } from "../hub/signature";
import { dataOf, dataUrl, extrasOf } from "../openai";
import { chatOnly, ownExtras, ownValue } from "./extras";
import { hubName, localName, type ToolNames, wireName } from "./tools";

// ── Wire facts ──

const knownFields = {
  text: new Set(["type", "text"]),
  refusal: new Set(["type", "refusal"]),
  image: new Set(["type", "image_url"]),
  file: new Set(["type", "filename", "file_data"]),
  fileLink: new Set(["type", "filename", "file_url", "file_data"]),
  reasoning: new Set(["type", "id", "summary", "encrypted_content"]),
  call: new Set(["type", "call_id", "name", "arguments", "input"]),
  output: new Set(["type", "call_id", "output"]),
};

// ── Decode ──

/**
 * The content of a message or of a tool's output.
 * @param textType The type of plain text there; another type is kept in the extras.
 */
export function decodeContent(content: unknown, path: string, textType: string): Part[] {
  return arrayAt(content, path).map((value, index) => decodePart(objectAt(value, `${path}[${index}]`), textType));
}

function decodePart(part: JsonObject, textType: string): Part {
  const { type } = part;
  if ((type === "input_text" || type === "output_text" || type === "text") && typeof part.text === "string")
    return { kind: "text", text: part.text, ...textExtras(part, textType) };
  if (type === "refusal" && typeof part.refusal === "string")
    return { kind: "text", text: part.refusal, refusal: true, ...extrasOf(omit(part, knownFields.refusal)) };
  if (type === "input_image" && typeof part.image_url === "string")
    return {
      kind: "image",
      source: dataOf(part.image_url) ?? { url: part.image_url },
      ...extrasOf(omit(part, knownFields.image)),
    };
  const data = type === "input_file" && typeof part.file_data === "string" ? dataOf(part.file_data) : undefined;
  if (data) {
    const name = typeof part.filename === "string" ? { name: part.filename } : {};
    return { kind: "file", ...name, ...data, ...extrasOf(omit(part, knownFields.file)) };
  }
  if (type === "input_file" && typeof part.file_url === "string" && part.file_data == null) {
    const name = typeof part.filename === "string" ? { name: part.filename } : {};
    return { kind: "file-link", ...name, url: part.file_url, ...extrasOf(omit(part, knownFields.fileLink)) };
  }
  return { kind: "foreign", dialect: "responses", value: part, ...extrasOf({ content: true }) };
}

/** Empty annotations and logprobs are omitted. */
function textExtras(part: JsonObject, textType: string): WithExtras {
  const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;
  const others: JsonObject = { ...omit(part, knownFields.text) };
  for (const key of ["annotations", "logprobs"]) if (isEmpty(others[key])) delete others[key];
  return extrasOf(part.type === textType ? others : { ...others, type: part.type });
}

/** A `reasoning` item. */
export function decodeThinking(item: JsonObject): Part {
  const text = thinkingText(item);
  const id = typeof item.id === "string" ? item.id : undefined;
  const proof = typeof item.encrypted_content === "string" ? item.encrypted_content : "";
  const isPlain = Bun.deepEquals(item.summary, summaryOf(text));
  const extras = extrasOf({
    ...omit(item, knownFields.reasoning),
    ...(isPlain ? {} : { summary: item.summary ?? [] }),
  });
  return {
    kind: "thinking",
    text,
    ...(proof === "" ? {} : { signature: unpackSignature(proof, "responses", id) }),
    ...extras,
  };
}

/** The text of a reasoning item: its summary, or the raw thinking if there is none. */
export function thinkingText(item: JsonObject): string {
  const textsOf = (parts: unknown) => (Array.isArray(parts) ? parts.filter(isObject).map(({ text }) => text) : []);
  const joined = (texts: unknown[]) => texts.filter((text) => typeof text === "string" && text !== "").join("\n\n");
  return joined(textsOf(item.summary)) || joined(textsOf(item.content));
}

const summaryOf = (text: string): JsonObject[] => (text === "" ? [] : [{ type: "summary_text", text }]);

/** A call of a function or freeform tool. @throws ProxyError `invalid_request` naming the field. */
export function decodeCall(item: JsonObject, path: string, scope: ToolNames): ToolCallPart {
  const field = item.type === "custom_tool_call" ? "input" : "arguments";
  const name = textAt(item.name, `${path}.name`);
  const local = typeof item.namespace === "string" ? { [localName]: name } : {};
  return {
    kind: "tool-call",
    id: textAt(item.call_id, `${path}.call_id`),
    name: hubName(name, item.namespace, scope),
    input: textAt(item[field], `${path}.${field}`),
    ...extrasOf({ ...omit(item, knownFields.call), ...local }),
  };
}

/** A call's output. @throws ProxyError `invalid_request` naming the field. */
export function decodeResult(item: JsonObject, path: string): ToolResultPart {
  const output = typeof item.output === "string" ? [{ type: "input_text", text: item.output }] : item.output;
  return {
    kind: "tool-result",
    id: textAt(item.call_id, `${path}.call_id`),
    parts: decodeContent(output, `${path}.output`, "input_text"),
    // The dialect has no field for a failed tool; other gateways write `incomplete`, and Copilot accepts it.
    ...(item.status === "incomplete" ? { failed: true } : {}),
    ...extrasOf(omit(item, knownFields.output)),
  };
}

// ── Encode ──

type ContentPart = TextPart | ImagePart | FilePart | FileLinkPart;

/** Whether a part belongs into a message; every other part is an item of its own. */
export const isContent = (part: Part): part is ContentPart =>
  part.kind === "text" || part.kind === "image" || part.kind === "file" || part.kind === "file-link";

/** @param textType The type of plain text at this place. */
export function encodeContent(part: ContentPart, textType: string, dropped: Set<string>): JsonObject {
  const extras = ownExtras(part, chatOnly.others, dropped);
  switch (part.kind) {
    case "text":
      return part.refusal
        ? { ...extras, type: "refusal", refusal: part.text }
        : { type: textType, text: part.text, ...extras };
    case "image": {
      const { source } = part;
      const url = "url" in source ? source.url : dataUrl(source);
      return { ...extras, type: "input_image", image_url: url };
    }
    case "file": {
      const file_data = dataUrl(part);
      return omitUndefined({ ...extras, type: "input_file", filename: part.name, file_data });
    }
    case "file-link":
      return omitUndefined({ ...extras, type: "input_file", filename: part.name, file_url: part.url });
  }
}

/** The state of writing a request. */
export interface Writing {
  conversation: Conversation;
  /** The ids of freeform calls: their results have another type. */
  freeformCalls: Set<string>;
  dropped: Set<string>;
}

/** Undefined for what the dialect does not have; its name is added to `dropped`. */
export function encodeItem(part: Exclude<Part, ContentPart>, writing: Writing): JsonObject | undefined {
  const { dropped, freeformCalls } = writing;
  const { [localName]: _, ...extras } = ownExtras(part, chatOnly.others, dropped);
  switch (part.kind) {
    case "server-call":
    case "server-result":
      // `adapt` has made functions of them.
      dropped.add(part.tool);
      return undefined;
    case "foreign":
      return ownValue(part, dropped);
    case "thinking": {
      if (part.signature?.dialect !== "responses") {
        dropped.add("thinking");
        return undefined;
      }
      const { value, id } = part.signature;
      return omitUndefined({
        type: "reasoning",
        id,
        summary: summaryOf(part.text),
        encrypted_content: value,
        ...extras,
      });
    }
    case "tool-call": {
      if (part.freeform) freeformCalls.add(part.id);
      const input = part.freeform ? { input: part.input } : { arguments: part.input };
      const type = part.freeform ? "custom_tool_call" : "function_call";
      return { ...extras, type, call_id: part.id, ...wireName(writing.conversation, part), ...input };
    }
    case "tool-result": {
      const type = part.freeform || freeformCalls.has(part.id) ? "custom_tool_call_output" : "function_call_output";
      const status = part.failed ? { status: "incomplete" } : {};
      return { ...extras, type, call_id: part.id, output: encodeOutput(part.parts, dropped), ...status };
    }
  }
}

/** A tool's output: a single plain text as a string, anything else as parts. */
function encodeOutput(parts: Part[], dropped: Set<string>): string | JsonObject[] {
  const pieces = parts.flatMap((part): JsonObject[] => {
    if (isContent(part)) return [encodeContent(part, "input_text", dropped)];
    const own = part.kind === "foreign" ? ownValue(part, dropped) : undefined;
    return own ? [own] : [];
  });
  const [first] = pieces;
  if (!first) return "";
  const isPlain = pieces.length === 1 && first.type === "input_text" && Object.keys(first).length === 2;
  return isPlain && typeof first.text === "string" ? first.text : pieces;
}
