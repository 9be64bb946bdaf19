/** The parts of a responses request: the content of messages, and the other items. */
import { isObject } from "../../lib/json";
import { type CallPiece, pairCalls } from "../hub/call-pairs";
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
import { Fields } from "../hub/fields";
import { arrayAt, omitUndefined, textIn } from "../hub/json";
import type { Notes } from "../hub/notes";
import { signedThinking, unpackSignature } from "../hub/signature";
import { dataOf, dataUrl, extrasOf } from "../openai";
import { chatOnly, ownExtras, ownValue } from "./extras";
import { hubName, type ToolNames, wireName } from "./tools";

// ── Decode ──

/**
 * The content of a message or of a tool's output.
 * @param textType The type of plain text there; another type is kept in the extras.
 */
export function decodeContent(content: unknown, path: string, textType: string): Part[] {
  return arrayAt(content, path).map((value, index) => decodePart(Fields.at(value, `${path}[${index}]`), textType));
}

function decodePart(part: Fields, textType: string): Part {
  const { text, refusal, image_url: image, file_data, file_url, filename } = part.object;
  const type = part.any("type");
  if ((type === "input_text" || type === "output_text" || type === "text") && typeof text === "string") {
    part.skip("text");
    return { kind: "text", text, ...textExtras(part, textType) };
  }
  if (type === "refusal" && typeof refusal === "string") {
    part.skip("refusal");
    return { kind: "text", text: refusal, refusal: true, ...extrasOf(part.rest()) };
  }
  if (type === "input_image" && typeof image === "string") {
    part.skip("image_url");
    return { kind: "image", source: dataOf(image) ?? { url: image }, ...extrasOf(part.rest()) };
  }
  const data = type === "input_file" && typeof file_data === "string" ? dataOf(file_data) : undefined;
  const name = typeof filename === "string" ? { name: filename } : {};
  if (data) {
    part.skip("filename", "file_data");
    return { kind: "file", ...name, ...data, ...extrasOf(part.rest()) };
  }
  if (type === "input_file" && typeof file_url === "string" && file_data == null) {
    part.skip("filename", "file_url", "file_data");
    return { kind: "file-link", ...name, url: file_url, ...extrasOf(part.rest()) };
  }
  return { kind: "foreign", dialect: "responses", value: part.object, isContent: true };
}

/** Empty annotations and logprobs are omitted. */
function textExtras(part: Fields, textType: string): WithExtras {
  const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;
  for (const key of ["annotations", "logprobs"]) if (isEmpty(part.object[key])) part.skip(key);
  const { type } = part.object;
  return extrasOf({ ...part.rest(), ...(type === textType ? {} : { type }) });
}

/** A `reasoning` item. */
export function decodeThinking(item: JsonObject): Part {
  const fields = new Fields(item);
  fields.skip("type");
  const text = thinkingText(item);
  const proof = textIn(fields.any("encrypted_content"));
  const id = fields.any("id");
  const summary = fields.any("summary");
  const isPlain = Bun.deepEquals(summary, summaryOf(text));
  const signature =
    proof === "" ? undefined : unpackSignature(proof, "responses", typeof id === "string" ? id : undefined);
  return {
    ...(signature ? signedThinking(text, signature) : { kind: "thinking", text }),
    ...extrasOf({ ...fields.rest(), ...(isPlain ? {} : { summary: summary ?? [] }) }),
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
  const fields = new Fields(item, path);
  const name = fields.text("name");
  const id = fields.text("call_id");
  const input = fields.text(fields.any("type") === "custom_tool_call" ? "input" : "arguments");
  fields.skip("arguments", "input");
  return {
    kind: "tool-call",
    id,
    name: hubName(name, item.namespace, scope),
    input,
    ...(typeof item.namespace === "string" ? { localName: name } : {}),
    ...extrasOf(fields.rest()),
  };
}

/** A call's output. @throws ProxyError `invalid_request` naming the field. */
export function decodeResult(item: JsonObject, path: string): ToolResultPart {
  const fields = new Fields(item, path);
  fields.skip("type");
  const output = fields.any("output");
  const content = typeof output === "string" ? [{ type: "input_text", text: output }] : output;
  return {
    kind: "tool-result",
    id: fields.text("call_id"),
    parts: decodeContent(content, fields.pathOf("output"), "input_text"),
    // The dialect has no field for a failed tool; other gateways write `incomplete`, and Copilot accepts it.
    ...(item.status === "incomplete" ? { failed: true } : {}),
    ...extrasOf(fields.rest()),
  };
}

// ── Encode ──

type ContentPart = TextPart | ImagePart | FilePart | FileLinkPart;

/** Whether a part belongs into a message; every other part is an item of its own. */
export const isContent = (part: Part): part is ContentPart =>
  part.kind === "text" || part.kind === "image" || part.kind === "file" || part.kind === "file-link";

/** @param textType The type of plain text at this place. */
export function encodeContent(part: ContentPart, textType: string, notes: Notes): JsonObject {
  const extras = ownExtras(part, chatOnly.others, notes);
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
  /** The results of freeform calls, which have another type. */
  freeformResults: ReadonlySet<ToolResultPart>;
  notes: Notes;
}

/** The results of freeform calls: those whose call is one, and those without a call that say so themselves. */
export function freeformResultsIn({ turns }: Conversation): Set<ToolResultPart> {
  const pieces: (CallPiece<ToolCallPart | ToolResultPart> | undefined)[] = [];
  for (const { role, parts } of turns)
    for (const part of parts)
      if (part.kind === "tool-call") pieces.push({ kind: "call", id: part.id, item: part });
      else if (part.kind === "tool-result") pieces.push({ kind: "result", id: part.id, item: part });
      else if (role !== "assistant") pieces.push(undefined);
  const found = new Set<ToolResultPart>();
  for (const [item, { partner }] of pairCalls(pieces))
    if (item.kind === "tool-result" && (partner?.item ?? item).freeform) found.add(item);
  return found;
}

/** Undefined for what the dialect does not have; it is noted as dropped. */
export function encodeItem(part: Exclude<Part, ContentPart>, writing: Writing): JsonObject | undefined {
  const { notes, freeformResults } = writing;
  const extras = ownExtras(part, chatOnly.others, notes);
  switch (part.kind) {
    case "server-call":
    case "server-result":
      // `adapt` has made functions of them.
      notes.addDropped(part.tool);
      return undefined;
    case "foreign":
      return ownValue(part, notes);
    case "thinking": {
      if (part.signature?.dialect !== "responses") {
        notes.addDropped("thinking");
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
      const input = part.freeform ? { input: part.input } : { arguments: part.input };
      const type = part.freeform ? "custom_tool_call" : "function_call";
      return { ...extras, type, call_id: part.id, ...wireName(writing.conversation, part), ...input };
    }
    case "tool-result": {
      const type = freeformResults.has(part) ? "custom_tool_call_output" : "function_call_output";
      const status = part.failed ? { status: "incomplete" } : {};
      return { ...extras, type, call_id: part.id, output: encodeOutput(part.parts, notes), ...status };
    }
    default:
      return part satisfies never;
  }
}

/** A tool's output: a single plain text as a string, anything else as parts. */
function encodeOutput(parts: Part[], notes: Notes): string | JsonObject[] {
  const pieces = parts.flatMap((part): JsonObject[] => {
    if (isContent(part)) return [encodeContent(part, "input_text", notes)];
    const own = part.kind === "foreign" ? ownValue(part, notes) : undefined;
    return own ? [own] : [];
  });
  const [first] = pieces;
  if (!first) return "";
  const isPlain = pieces.length === 1 && first.type === "input_text" && Object.keys(first).length === 2;
  return isPlain && typeof first.text === "string" ? first.text : pieces;
}
