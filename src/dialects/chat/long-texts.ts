/** Where a chat request's long texts need not be read: nothing looks past their beginning. */
import type { MarkPlace } from "../../net/json/json-skeleton";
import { keepsFile, keepsText } from "../long-texts";

const part: MarkPlace["members"] = {
  text: { keeps: keepsText },
  image_url: { keeps: keepsText, members: { url: { keeps: keepsText } } },
  file: { members: { file_data: { keeps: keepsFile } } },
};

export const longTexts: MarkPlace = {
  members: { messages: { members: { content: { keeps: keepsText, members: part } } } },
};
