/** Where a gemini request's long texts need not be read: nothing looks past their beginning. */
import type { MarkPlace } from "../../net/json-skeleton";
import { keepsText } from "../long-texts";

/** PNG, JPEG, GIF, WebP and PDF; the text of other files is decoded for some upstreams. */
const keepsMedia = (beginning: string): boolean => /^(?:iVBORw0KGgo|\/9j\/|R0lGOD|UklGR|JVBERi0)/.test(beginning);

const media: MarkPlace = { members: { data: { keeps: keepsMedia } } };

const parts: MarkPlace = {
  members: { text: { keeps: keepsText }, inlineData: media, inline_data: media },
};

const content: MarkPlace = { members: { parts } };

export const longTexts: MarkPlace = {
  members: { contents: content, systemInstruction: content, system_instruction: content },
};
