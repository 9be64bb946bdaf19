/** Where a responses request's long texts need not be read: nothing looks past their beginning. */
import type { MarkPlace } from "../../net/json/json-skeleton";
import { keepsFile, keepsText } from "../long-texts";

/** The content of a message, or the output of a tool. */
const content: MarkPlace = {
  keeps: keepsText,
  members: { text: { keeps: keepsText }, image_url: { keeps: keepsText }, file_data: { keeps: keepsFile } },
};

export const longTexts: MarkPlace = {
  members: { input: { keeps: keepsText, members: { content, output: content } } },
};
