/** The parts of a content. */

import { ProxyError } from "../../errors";
import { isObject } from "../../json";
import { joinTexts } from "../../net/json/json-skeleton";
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
import { optionalText, textAt } from "../hub/json";
import type { CallIds } from "./call-ids";
import { extrasBeside, fieldsAt, fieldsIn, objectsAt, optionalFieldsAt } from "./fields";
import { decodeSignature } from "./signature";

// ── Wire facts ──

/** The fields that are read; all others become extras. */
const knownFields = {
  part: new Set(["text", "thought", "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse"]),
  media: new Set(["mimeType", "data", "fileUri", "displayName"]),
  call: new Set(["id", "name", "args"]),
  result: new Set(["id", "name", "response", "parts"]),
};

// ── Turns ──

/** Parts of the user, which include the results of tools. */
export function decodeUserParts(parts: unknown[], path: string, calls: CallIds): Part[] {
  return parts.flatMap((value, index) => decodePart(fieldsAt(value, `${path}[${index}]`), `${path}[${index}]`, calls));
}

/**
 * Parts of the model, added to those of the same turn. A client may send a reply as it was streamed, in many pieces:
 * thoughts and texts are joined. A signature belongs to the thought before its part, which may be left out.
 */
export function addModelParts(parts: unknown[], path: string, calls: CallIds, turn: Part[]): void {
  parts.forEach((value, index) => {
    const at = `${path}[${index}]`;
    const fields = fieldsAt(value, at);
    const text = optionalText(fields.text, `${at}.text`) ?? "";
    const signature = decodeSignature(optionalText(fields.thoughtSignature, `${at}.thoughtSignature`) ?? "");
    const last = turn.at(-1);
    const open = last?.kind === "thinking" && !last.signature ? last : undefined;
    if (fields.thought === true || signature) {
      const thought = fields.thought === true ? text : "";
      if (open) Object.assign(open, { text: open.text + thought, ...(signature ? { signature } : {}) });
      else if (thought !== "" || signature)
        turn.push({ kind: "thinking", text: thought, ...(signature ? { signature } : {}) });
    }
    if (fields.thought === true) return;
    for (const part of decodePart(fields, at, calls)) {
      const before = turn.at(-1);
      if (part.kind === "text" && before?.kind === "text" && !before.extras && !part.extras)
        before.text = joinTexts(before.text, part.text);
      else turn.push(part);
    }
  });
}

// ── Parts ──

/** Nothing for an empty text: streams end with one. */
function decodePart(fields: JsonObject, path: string, calls: CallIds): Part[] {
  const extras = extrasBeside(knownFields.part, fields);
  if (fields.functionCall != null) return [decodeCall(fields.functionCall, `${path}.functionCall`, calls)];
  if (fields.functionResponse != null)
    return [decodeResult(fields.functionResponse, `${path}.functionResponse`, calls)];
  if (fields.inlineData != null) return [{ ...decodeData(fields.inlineData, `${path}.inlineData`), ...extras }];
  if (fields.fileData != null) return [{ ...decodeLink(fields.fileData, `${path}.fileData`), ...extras }];
  if (fields.text != null) {
    const text = textAt(fields.text, `${path}.text`);
    return text === "" ? [] : [{ kind: "text", text, ...extras }];
  }
  return decodeForeign(fields);
}

function decodeCall(value: unknown, path: string, calls: CallIds): ToolCallPart {
  const call = fieldsAt(value, path);
  const name = textAt(call.name, `${path}.name`);
  const id = optionalText(call.id, `${path}.id`);
  return {
    kind: "tool-call",
    id: calls.call(id || undefined, name),
    name,
    input: JSON.stringify(optionalFields(call.args, `${path}.args`)),
    ...extrasBeside(knownFields.call, call),
  };
}

/** An object whose field names are the tool's own. */
function optionalFields(value: unknown, path: string): JsonObject {
  if (value == null) return {};
  if (isObject(value)) return value;
  throw new ProxyError("invalid_request", `\`${path}\` must be an object.`, { param: path });
}

function decodeResult(value: unknown, path: string, calls: CallIds): ToolResultPart {
  const result = fieldsAt(value, path);
  const name = optionalText(result.name, `${path}.name`) ?? "";
  const id = optionalText(result.id, `${path}.id`);
  const { text, failed } = outputOf(optionalFields(result.response, `${path}.response`));
  const media = objectsAt(result.parts, `${path}.parts`).flatMap((part, index) =>
    decodePart(fieldsAt(part, `${path}.parts[${index}]`), `${path}.parts[${index}]`, calls),
  );
  return {
    kind: "tool-result",
    id: calls.answer(id || undefined, name),
    parts: [...(text === "" ? [] : [{ kind: "text" as const, text }]), ...media],
    ...(failed ? { failed } : {}),
    ...extrasBeside(knownFields.result, result),
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

function decodeData(value: unknown, path: string): ImagePart | FilePart {
  const blob = fieldsAt(value, path);
  const mediaType = textAt(blob.mimeType, `${path}.mimeType`);
  const base64 = textAt(blob.data, `${path}.data`);
  const extras = extrasBeside(knownFields.media, blob);
  if (mediaType.startsWith("image/")) return { kind: "image", source: { mediaType, base64 }, ...extras };
  const name = optionalText(blob.displayName, `${path}.displayName`);
  return { kind: "file", ...(name === undefined ? {} : { name }), mediaType, base64, ...extras };
}

/** @throws ProxyError `invalid_request` for a file that was uploaded to Google: no upstream here has it. */
function decodeLink(value: unknown, path: string): ImagePart | FileLinkPart {
  const file = fieldsAt(value, path);
  const url = textAt(file.fileUri, `${path}.fileUri`);
  if (!/^https?:\/\//.test(url) || /^https?:\/\/[^/]*\.googleapis\.com\//.test(url))
    throw new ProxyError(
      "invalid_request",
      `\`${path}.fileUri\` names a file that only Google's own service can read; send its content as \`inlineData\`.`,
      { param: `${path}.fileUri`, code: "unsupported_file" },
    );
  const mediaType = optionalText(file.mimeType, `${path}.mimeType`) ?? "";
  const name = optionalText(file.displayName, `${path}.displayName`);
  const extras = extrasBeside(knownFields.media, file);
  if (mediaType.startsWith("image/")) return { kind: "image", source: { url }, ...extras };
  return { kind: "file-link", ...(name === undefined ? {} : { name }), url, ...extras };
}

/** A part that only Google has, under its field's name. The code that Google's service ran is shown as text. */
function decodeForeign(fields: JsonObject): ForeignPart[] {
  const [type] = Object.keys(fields).filter((key) => !knownFields.part.has(key) && fields[key] != null);
  if (type === undefined) return [];
  const words = wordsOf[type]?.(fieldsIn(fields[type]));
  return [
    {
      kind: "foreign",
      dialect: "gemini",
      value: { type, ...fields },
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
  const { parts } = Array.isArray(value) ? { parts: value } : optionalFieldsAt(value, path);
  return objectsAt(parts, `${path}.parts`).flatMap((part, index): TextPart[] => {
    const at = `${path}.parts[${index}]`;
    const fields = typeof part === "string" ? { text: part } : fieldsAt(part, at);
    const text = textAt(fields.text, `${at}.text`);
    return text === "" ? [] : [{ kind: "text", text, ...extrasBeside(knownFields.part, fields) }];
  });
}
