/** The roles in a gemini request, and whether it contains an image. */
import type { JsonObject } from "../hub/conversation";
import { type Overview, overviewOf, type PromptHead } from "../overview";
import { fieldsIn, objectsAmong } from "./fields";

const types = {
  text: new Set(["text"]),
  image: new Set(["image"]),
  isResult: (type: unknown) => type === "functionResponse",
};

export function overview(body: JsonObject): Overview {
  return overviewOf(
    contentsIn(body).map(({ role, parts }) => ({ by: role === "model" ? "model" : "user", content: partsIn(parts) })),
    types,
  );
}

export function promptHead(body: JsonObject): PromptHead {
  const { tools, systemInstruction } = fieldsIn(body);
  return { tools, system: systemInstruction, first: contentsIn(body)[0]?.parts };
}

const contentsIn = (body: JsonObject): JsonObject[] => objectsAmong(fieldsIn(body).contents).map(fieldsIn);

/** Each part under the name of what it is, as the other dialects have it. */
const partsIn = (parts: unknown): unknown[] =>
  objectsAmong(parts)
    .map(fieldsIn)
    .map((part) => {
      const { text, functionResponse, inlineData, fileData } = part;
      if (functionResponse != null)
        return { type: "functionResponse", content: partsIn(fieldsIn(functionResponse).parts) };
      if (inlineData != null || fileData != null) return { type: isImage(inlineData ?? fileData) ? "image" : "file" };
      return typeof text === "string" ? { type: "text", text } : { type: "other" };
    });

function isImage(media: unknown): boolean {
  const { mimeType } = fieldsIn(media);
  return typeof mimeType === "string" && mimeType.startsWith("image/");
}
