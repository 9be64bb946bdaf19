/** Where a gemini request's long texts need not be read: nothing looks past their beginning. */
import type { MarkPlace } from "../../net/json/json-skeleton";
import { keepsMedia, keepsText } from "../long-texts";

const media: MarkPlace = { members: { data: { keeps: keepsMedia } } };

const parts: MarkPlace = {
  members: { text: { keeps: keepsText }, inlineData: media, inline_data: media },
};

const content: MarkPlace = { members: { parts } };

export const longTexts: MarkPlace = {
  members: { contents: content, systemInstruction: content, system_instruction: content },
};
