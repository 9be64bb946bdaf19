/** The parts of a content. */

import { isObject } from "../../lib/json";
import { joinTexts } from "../../lib/net/json/json-skeleton";
import type {
  FileLinkPart,
  FilePart,
  ForeignPart,
  ImagePart,
  JsonObject,
  Part,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from "../hub/conversation";
import { refuse } from "../hub/json";
import { signedThinking } from "../hub/signature";
import type { CallIds } from "./call-ids";
import { fieldsAt, fieldsIn, GoogleFields, objectsAt, unreadExtras } from "./fields";
import { decodeSignature } from "./signature";

// ── Turns ──

/** Parts of the user, which include the results of tools. */
export function decodeUserParts(parts: GoogleFields[], calls: CallIds): Part[] {
  return parts.flatMap((part) => decodePart(part, calls));
}

/**
 * Parts of the model, added to those of the same turn. A client may send a reply as it was streamed, in many pieces:
 * thoughts and texts are joined. A signature belongs to the thought before its part, which may be left out.
 */
export function addModelParts(parts: GoogleFields[], calls: CallIds, turn: Part[]): void {
  for (const fields of parts) {
    const text = fields.optionalText("text") ?? "";
    const signature = decodeSignature(fields.optionalText("thoughtSignature") ?? "");
    const isThought = fields.any("thought") === true;
    const last = turn.at(-1);
    const open = last?.kind === "thinking" && !last.signature ? last : undefined;
    if (isThought || signature) {
      const thought = isThought ? text : "";
      const said = (open?.text ?? "") + thought;
      const part: Part = signature ? signedThinking(said, signature) : { kind: "thinking", text: said };
      if (open) Object.assign(open, part);
      else if (thought !== "" || signature) turn.push(part);
    }
    if (isThought) continue;
    for (const part of decodePart(fields, calls)) {
      const before = turn.at(-1);
      if (part.kind === "text" && before?.kind === "text" && !before.extras && !part.extras)
        before.text = joinTexts([before.text, part.text]);
      else turn.push(part);
    }
  }
}

// ── Parts ──

/** Nothing for an empty text: streams end with one. */
function decodePart(part: GoogleFields, calls: CallIds): Part[] {
  const { functionCall, functionResponse, inlineData, fileData, text } = part.object;
  part.skip(...partFields);
  const extras = unreadExtras(part);
  if (functionCall != null) return [decodeCall(part.fields("functionCall"), calls)];
  if (functionResponse != null) return [decodeResult(part.fields("functionResponse"), calls)];
  if (inlineData != null) return [{ ...decodeData(part.fields("inlineData")), ...extras }];
  if (fileData != null) return [{ ...decodeLink(part.fields("fileData")), ...extras }];
  if (text == null) return decodeForeign(part);
  return text === "" ? [] : [{ kind: "text", text: part.text("text"), ...extras }];
}

/** A part has one of these, and what may stand beside it. */
const partFields = [
  ...["text", "thought", "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse"],
];

function decodeCall(call: GoogleFields, calls: CallIds): ToolCallPart {
  const name = call.text("name");
  const id = call.optionalText("id");
  return {
    kind: "tool-call",
    id: calls.call(id || undefined, name),
    name,
    input: JSON.stringify(optionalFields(call.any("args"), call.pathOf("args"))),
    ...unreadExtras(call),
  };
}

/** An object whose field names are the tool's own. */
function optionalFields(value: unknown, path: string): JsonObject {
  if (value == null) return {};
  if (isObject(value)) return value;
  refuse(path, `\`${path}\` must be an object.`);
}

function decodeResult(result: GoogleFields, calls: CallIds): ToolResultPart {
  const name = result.optionalText("name") ?? "";
  const id = result.optionalText("id");
  const { text, failed } = outputOf(optionalFields(result.any("response"), result.pathOf("response")));
  const media = decodeUserParts(result.objects("parts"), calls);
  return {
    kind: "tool-result",
    id: calls.answer(id || undefined, name),
    parts: [...(text === "" ? [] : [{ kind: "text" as const, text }]), ...media],
    ...(failed ? { failed } : {}),
    ...unreadExtras(result),
  };
}

/** Google's two names for a response that is one value: `output`, and `error` for a tool that failed. */
function outputOf(response: JsonObject): { text: string; failed?: true } {
  const [name, ...others] = Object.keys(response);
  if (name === undefined) return { text: "" };
  if (others.length > 0 || (name !== "output" && name !== "error")) return { text: JSON.stringify(response) };
  const value = response[name];
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return name === "error" ? { text, failed: true } : { text };
}

/** The Gemini API alone has sounds and films, also by an address of YouTube, for which its documents name no type. */
const mediaOf = (mediaType: string, url = "") =>
  /^(audio|video)\//i.exec(mediaType)?.[1]?.toLowerCase() ??
  (/^https?:\/\/(?:[\w-]+\.)*(?:youtube\.com|youtu\.be)\//i.test(url) ? "video" : undefined);

const foreignMedia = (type: string, { object }: GoogleFields): ForeignPart => {
  return { kind: "foreign", dialect: "gemini", value: { ...object, type } };
};

function decodeData(blob: GoogleFields): ImagePart | FilePart | ForeignPart {
  blob.skip("displayName", "fileUri");
  const mediaType = blob.text("mimeType");
  const media = mediaOf(mediaType);
  if (media !== undefined) return foreignMedia(media, blob);
  const base64 = standardBase64(blob.text("data"));
  const extras = unreadExtras(blob);
  if (mediaType.startsWith("image/")) return { kind: "image", source: { mediaType, base64 }, ...extras };
  const name = blob.optionalText("displayName");
  return { kind: "file", ...(name === undefined ? {} : { name }), mediaType, base64, ...extras };
}

/**
 * Bytes in the one form that other APIs take. Protobuf's JSON mapping has two alphabets, with padding or without, and Google's
 * package for Python writes the one for URLs (google-genai 2.25.0, `_common.py`, 2026-11).
 */
function standardBase64(data: string): string {
  const standard = /[-_]/.test(data) ? data.replaceAll("-", "+").replaceAll("_", "/") : data;
  return standard.padEnd(Math.ceil(standard.length / 4) * 4, "=");
}

/** @throws ProxyError `invalid_request` for a file that was uploaded to Google: no upstream here has it. */
function decodeLink(file: GoogleFields): ImagePart | FileLinkPart | ForeignPart {
  const url = file.text("fileUri");
  const param = file.pathOf("fileUri");
  if (!/^https?:\/\//.test(url) || /^https?:\/\/[^/]*\.googleapis\.com\//.test(url))
    refuse(
      param,
      `\`${param}\` names a file that only Google's own service can read; send its content as \`inlineData\`.`,
      "unsupported_file",
    );
  const mediaType = file.optionalText("mimeType") ?? "";
  const media = mediaOf(mediaType, url);
  if (media !== undefined) return foreignMedia(media, file);
  const name = file.optionalText("displayName");
  file.skip("data");
  const extras = unreadExtras(file);
  if (mediaType.startsWith("image/")) return { kind: "image", source: { url }, ...extras };
  return { kind: "file-link", ...(name === undefined ? {} : { name }), url, ...extras };
}

/** A part that only Google has, under its field's name. The code that Google's service ran is shown as text. */
function decodeForeign(part: GoogleFields): ForeignPart[] {
  const [[type, value] = []] = Object.entries(part.rest() ?? {}).filter(([, value]) => value != null);
  if (type === undefined) return [];
  const words = wordsOf[type]?.(fieldsIn(value));
  return [
    {
      kind: "foreign",
      dialect: "gemini",
      value: { type, ...part.object },
      ...(words === undefined ? {} : { instead: [words] }),
    },
  ];
}

const wordsOf: Record<string, (fields: JsonObject) => TextPart> = {
  executableCode: ({ language, code }) => ({
    kind: "text",
    text: `\`\`\`${String(language ?? "").toLowerCase()}\n${String(code ?? "")}\n\`\`\``,
  }),
  codeExecutionResult: ({ outcome, output }) => ({
    kind: "text",
    text: `${String(outcome ?? "OUTCOME_OK")}\n${String(output ?? "")}`,
  }),
};

/** The texts of instructions: a content, its parts, or a text. */
export function decodeSystemParts(value: unknown, path: string): Part[] {
  if (value == null) return [];
  if (typeof value === "string") return value === "" ? [] : [{ kind: "text", text: value }];
  const { parts } = Array.isArray(value) ? { parts: value } : fieldsAt(value, path);
  return objectsAt(parts, `${path}.parts`).flatMap((part, index): TextPart[] => {
    const fields = GoogleFields.at(typeof part === "string" ? { text: part } : part, `${path}.parts[${index}]`);
    fields.skip(...partFields);
    const text = fields.text("text");
    return text === "" ? [] : [{ kind: "text", text, ...unreadExtras(fields) }];
  });
}
