/** Who says what in a gemini request: each part stands under the name that it has in the other dialects. */
import type { JsonObject } from "../hub/conversation";
import { type Outline, speakerOf } from "../overview";
import { fieldsIn, oneOrMore } from "./fields";

export function outline(body: JsonObject): Outline {
  const { tools, systemInstruction, contents } = fieldsIn(body);
  const messages = oneOrMore(contents).map((item) => {
    const { role, parts } = fieldsIn(item);
    return { by: role === "model" ? speakerOf(role) : "user", content: partsIn(parts), item } as const;
  });
  return { tools, system: () => systemInstruction, messages };
}

const partsIn = (parts: unknown): unknown[] =>
  oneOrMore(parts)
    .map(fieldsIn)
    .map(({ text, functionResponse, inlineData, fileData }) => {
      if (functionResponse != null) return { type: "tool_result", content: partsIn(fieldsIn(functionResponse).parts) };
      if (inlineData != null || fileData != null) return { type: isImage(inlineData ?? fileData) ? "image" : "file" };
      return typeof text === "string" ? { type: "text", text } : { type: "other" };
    });

function isImage(media: unknown): boolean {
  const { mimeType } = fieldsIn(media);
  return typeof mimeType === "string" && mimeType.startsWith("image/");
}
